# SPDX-License-Identifier: Apache-2.0
"""Measures the time that a tool adds to the shortest command, true.

Run as a script, startup.py ROUNDS RESULT.json measures on the machine it runs on, which is the simulated one. The
tools take turns (A B C A B C ...), and each is compared with the true of its own round, so that load of the machine
affects all of them equally.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List

from machine import (
    SCRIPT_FOLDER,
    JOULEMAP_PROGRAM,
    PowerLaw,
    complete_powercap_tree,
    run_on_simulated_machine,
    scratch_folder,
)
from tables import Bar, ReportSection, Table, median_and_quartiles

MAX_STARTUP_MS = 30.0
TRUE_COMMAND = "true"
JOULEMAP_STAT = "joulemap stat -- true"

_PYTHON_PROGRAM = "import subprocess; subprocess.run(['true'])"
_PYJOULES_PROGRAM = """
import subprocess
from pyJoules.energy_meter import EnergyContext
with EnergyContext():
    subprocess.run(['true'])
"""
_ZEUS_PROGRAM = """
import subprocess
from zeus.monitor import ZeusMonitor
if __name__ == '__main__':
    monitor = ZeusMonitor(gpu_indices=[])
    monitor.begin_window('run')
    subprocess.run(['true'])
    print(monitor.end_window('run'))
"""


def _perf_command(perf: str) -> List[str]:
    if Path("/sys/bus/event_source/devices/power/events/energy-pkg").exists():
        return [perf, "stat", "-a", "-e", "power/energy-pkg/", "--", TRUE_COMMAND]
    return [perf, "stat", "-e", "task-clock", "--", TRUE_COMMAND]  # no energy here: measures the start of perf only


def list_commands() -> Dict[str, List[str]]:
    """Commands by their name in the table; the first is the reference for the others."""
    codecarbon = Path(sys.executable).parent / "codecarbon"
    commands_by_name = {
        TRUE_COMMAND: [TRUE_COMMAND],
        JOULEMAP_STAT: [str(JOULEMAP_PROGRAM), "stat", "--", TRUE_COMMAND],
        "python, no meter": [sys.executable, "-c", _PYTHON_PROGRAM],
        "pyJoules EnergyContext": [sys.executable, "-c", _PYJOULES_PROGRAM],
        "Zeus window": [sys.executable, "-c", _ZEUS_PROGRAM],
        "codecarbon monitor": [
            str(codecarbon),
            "monitor",
            "--offline",
            "--country-iso-code",
            "FRA",
            "--",
            TRUE_COMMAND,
        ],
    }
    perf = shutil.which("perf")
    if perf:
        commands_by_name["perf stat -- true"] = _perf_command(perf)
    return commands_by_name


def _failure_message(command: List[str], folder: str, environment: Dict[str, str]) -> str:
    """Runs a command once, which also warms up caches. Returns the last line of output if it fails, otherwise empty."""
    try:
        completed_process = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
    except OSError as error:
        return str(error.strerror)
    if completed_process.returncode == 0:
        return ""
    lines = (
        completed_process.stderr.strip()
        or completed_process.stdout.strip()
        or f"exit code {completed_process.returncode}"
    ).splitlines()
    return lines[-1]


def _measure_wall_ms(command: List[str], folder: str, environment: Dict[str, str]) -> float:
    start_time_s = time.perf_counter()
    subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return (time.perf_counter() - start_time_s) * 1e3


def measure_here(rounds: int) -> Dict[str, Any]:
    """Returns times of every round for every tool, and the messages of failing tools."""
    with tempfile.TemporaryDirectory(prefix="joulemap-bench-startup-") as folder:
        environment = {**os.environ, "HOME": folder}
        commands_by_name = list_commands()
        failures = {name: _failure_message(command, folder, environment) for name, command in commands_by_name.items()}
        runnable = {name: command for name, command in commands_by_name.items() if not failures[name]}
        times_ms: Dict[str, List[float]] = {name: [] for name in runnable}
        for _ in range(rounds):
            for name, command in runnable.items():
                times_ms[name].append(_measure_wall_ms(command, folder, environment))
    return {"times_ms": times_ms, "failures": {name: words for name, words in failures.items() if words}}


def measure_on_simulated_machine(rounds: int) -> Dict[str, Any]:
    """Measures on the simulated machine, which has readable counters."""
    with scratch_folder("startup") as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, str(SCRIPT_FOLDER / "startup.py"), str(rounds), str(result)]
        root = Path(folder) / "machine"
        run_on_simulated_machine(root, command, PowerLaw().options())
        return json.loads(result.read_text(encoding="utf-8"))


def added_startup_ms(measured: Dict[str, Any], name: str) -> List[float]:
    """Time added to true, by round, ms."""
    times = measured["times_ms"]
    return [with_tool - reference_ms for with_tool, reference_ms in zip(times[name], times[TRUE_COMMAND])]


def _format_startup_cell(measured: Dict[str, Any], name: str) -> str:
    if name in measured["failures"]:
        return "fails"
    return median_and_quartiles(added_startup_ms(measured, name), "{:.1f}")


def measure(rounds: int) -> Dict[str, Any]:
    """Measures on both machines."""
    return {"here": measure_here(rounds), "simulated": measure_on_simulated_machine(rounds), "rounds": rounds}


def report(measured: Dict[str, Any]) -> ReportSection:
    """Creates the table and the bar."""
    machines = {"this machine": measured["here"], "the simulated machine": measured["simulated"]}
    names = [name for name in list_commands() if name != TRUE_COMMAND]
    rows = [[name, *(_format_startup_cell(machine, name) for machine in machines.values())] for name in names]
    notes = [
        f"true alone took {statistics.median(machine['times_ms'][TRUE_COMMAND]):.1f} ms on {machine_name}."
        for machine_name, machine in machines.items()
    ]
    notes += [
        f'{name} fails on {machine_name}: "{words}".'
        for machine_name, machine in machines.items()
        for name, words in machine["failures"].items()
    ]
    notes += [
        "On the simulated machine joulemap finds counters, waits for their updates before and after "
        "(some milliseconds) and reads them; where there are none, it estimates.",
        "Zeus imports scikit-learn, and starts a Python process for every counter, which does so again.",
        "codecarbon imports pandas and asks py-cpuinfo for the CPU's name, which takes more than a second.",
    ]
    if "power/energy-pkg/" not in list_commands().get("perf stat -- true", ["power/energy-pkg/"]):
        notes.append("perf counts only task-clock: the kernel shows no power/energy-pkg/ here.")
    return ReportSection(
        "Start-up",
        "How many milliseconds longer true takes under each tool: median (quartiles) of "
        f"{measured['rounds']} rounds in which the tools take turns, each compared with the true of its "
        "own round.",
        [Table("Milliseconds over true", ["", *machines], rows)],
        notes,
        [_make_startup_bar(machine_name, machine) for machine_name, machine in machines.items()],
    )


def _make_startup_bar(machine_name: str, machine: Dict[str, Any]) -> Bar:
    bar_title, limit = f"start-up on {machine_name}", f"{MAX_STARTUP_MS:.0f} ms over true"
    if JOULEMAP_STAT in machine["failures"]:
        return Bar(bar_title, limit, "fails", False)
    median_ms = statistics.median(added_startup_ms(machine, JOULEMAP_STAT))
    return Bar(bar_title, limit, f"{median_ms:.1f} ms", median_ms <= MAX_STARTUP_MS)


if __name__ == "__main__":
    complete_powercap_tree()
    Path(sys.argv[2]).write_text(json.dumps(measure_here(int(sys.argv[1]))), encoding="utf-8")
