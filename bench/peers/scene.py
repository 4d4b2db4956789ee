# SPDX-License-Identifier: Apache-2.0
"""Runs on the simulated machine: all meters measure the same loads at the same time.

Run as a script on that machine: scene.py PLAN.json RESULT.json. In each round all meters open their windows, the load
runs, all close them. The true energy is computed afterwards, from the times written here.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Union

from loads import LoadProcesses, LoadSpan
from machine import SCRIPT_FOLDER, PowerLaw, TruthLog, complete_powercap_tree, run_on_simulated_machine, scratch_folder
from meters import MeterAgent, JoulemapMeter, cpu_s

Meter = Union[JoulemapMeter, MeterAgent]

PACKAGE_ZONE_FOLDER = Path("/sys/class/powercap/intel-rapl:0")
MAX_QUIET_BUSY_SHARE = (
    0.1  # below this busy share of all CPUs the machine is quiet; the simulator alone takes some hundredths
)


class LoadRound(NamedTuple):
    """One load; with wrap_ahead_j, it starts when the package's counter is that far from its wrap."""

    load: str
    seconds: float
    wrap_ahead_j: Optional[float] = None


class MeterPlan(NamedTuple):
    """A meter and its name; settings are joulemap's options or the peer's arguments."""

    name: str
    kind: str  # joulemap, or a name in agent.py
    settings: Any


class MeasuredScene(NamedTuple):
    """Result of a scene: its rounds as written, and the true energies."""

    rounds: List[Dict[str, Any]]
    truth: TruthLog


def open_meters(meter_plans: List[MeterPlan], folder: Path) -> List[Meter]:
    """Creates all meters; they write their files to the folder."""
    meters: List[Meter] = []
    for number, plan in enumerate(meter_plans):
        if plan.kind == "joulemap":
            meters.append(JoulemapMeter(plan.name, plan.settings, folder))
        else:
            meters.append(MeterAgent(plan.name, plan.kind, plan.settings, folder / f"{number}.log"))
    return meters


def _burn_until_wrap_is_near(loads: LoadProcesses, left_j: float) -> None:
    def read(file: str) -> float:
        return float((PACKAGE_ZONE_FOLDER / file).read_text(encoding="ascii"))

    end_uj = read("max_energy_range_uj")
    last_uj = read("energy_uj")
    while end_uj - last_uj > left_j * 1e6:
        loads.run("full", 0.05)
        now_uj = read("energy_uj")
        if now_uj < last_uj or end_uj - now_uj > 0.5 * end_uj:
            raise SystemExit("the counter has wrapped before the load")
        last_uj = now_uj


def _idle_s() -> float:
    """Idle seconds of all CPUs together."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def _wait_until_quiet(timeout_s: float) -> float:
    """Waits for other processes on this machine to finish, because their time counts as load.

    Returns the rest of the waiting time.
    """
    cpus = os.cpu_count() or 1
    while timeout_s > 0:
        began, idle_s = time.monotonic(), _idle_s()
        time.sleep(0.5)
        waited_s = time.monotonic() - began
        if _idle_s() - idle_s > (1 - MAX_QUIET_BUSY_SHARE) * cpus * waited_s:
            break
        timeout_s -= waited_s
    return timeout_s


def open_windows(meters: List[Meter]) -> None:
    """Opens all windows, joulemap's first: it starts a process, and the other windows would be open meanwhile."""
    for kind in (JoulemapMeter, MeterAgent):
        for meter in meters:
            if isinstance(meter, kind):
                meter.send_begin()
        for meter in meters:
            if isinstance(meter, kind):
                meter.wait_until_begun()


def close_windows(meters: List[Meter]) -> Dict[str, Dict[str, Any]]:
    """Closes all windows at the same time; returns the results by name."""
    for meter in meters:
        meter.send_end()
    return {meter.name: meter.wait_for_result() for meter in meters}


def _read_cpu_times(meters: List[Meter]) -> Dict[str, Dict[int, float]]:
    return {meter.name: {pid: cpu_s(pid) for pid in meter.pids()} for meter in meters}


def _run_round(this: LoadRound, meters: List[Meter], loads: LoadProcesses) -> Dict[str, Any]:
    if this.wrap_ahead_j is not None:
        _burn_until_wrap_is_near(loads, this.wrap_ahead_j)
    open_windows(meters)
    initial_cpu_times = _read_cpu_times(meters)
    span: LoadSpan = loads.run(this.load, this.seconds)
    final_cpu_times = {
        name: {pid: cpu_s(pid) for pid in process_cpu_times} for name, process_cpu_times in initial_cpu_times.items()
    }
    results = close_windows(meters)
    for name, result in results.items():
        # A process that ended in between counts as 0 instead of a negative time.
        result["cpu_s"] = sum(
            max(0.0, final_cpu_times[name][pid] - initial_cpu_s)
            for pid, initial_cpu_s in initial_cpu_times[name].items()
        )
    return {"load": this.load, "begin_ns": span.begin_ns, "end_ns": span.end_ns, "meters": results}


def run_scene(plan_path: Path, result_path: Path) -> None:
    """Runs a plan on the machine of this process."""
    plan = json.loads(plan_path.read_text(encoding="utf-8"))
    complete_powercap_tree()
    loads = LoadProcesses(os.cpu_count() or 1)
    meters = open_meters([MeterPlan(*meter) for meter in plan["meters"]], result_path.parent)
    try:
        rounds, patience_s = [], plan["patience_s"]
        for this in plan["rounds"]:
            for meter in meters:
                meter.prepare()
            patience_s = _wait_until_quiet(patience_s)
            rounds.append(_run_round(LoadRound(*this), meters, loads))
    finally:
        for meter in meters:
            meter.close()
        loads.close()
    result_path.write_text(json.dumps(rounds), encoding="utf-8")


def run_scene_on_simulated_machine(
    meters: List[MeterPlan],
    rounds: List[LoadRound],
    law: PowerLaw,
    options: Optional[List[str]] = None,
    patience_s: float = 0,
) -> MeasuredScene:
    """Starts a simulated machine, runs the rounds on it, and returns all results.

    Rounds start when the machine is quiet, or when patience_s in total are used up.
    """
    with scratch_folder("scene") as name:
        folder = Path(name)
        plan = {"patience_s": patience_s, "meters": meters, "rounds": rounds}
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        scene_arguments = [str(SCRIPT_FOLDER / "scene.py"), str(folder / "plan.json"), str(folder / "result.json")]
        truth = run_on_simulated_machine(
            folder / "machine", [sys.executable, *scene_arguments], [*law.options(), *(options or [])]
        )
        return MeasuredScene(json.loads((folder / "result.json").read_text(encoding="utf-8")), truth)


if __name__ == "__main__":
    run_scene(Path(sys.argv[1]), Path(sys.argv[2]))
