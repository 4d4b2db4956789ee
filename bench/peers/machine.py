# SPDX-License-Identifier: Apache-2.0
"""Machines of the benchmark: a description of the real one, and the simulated one, started for a command.

The simulated machine makes relative errors measurable: it shows counters that every tool reads in their usual place,
/sys/class/powercap, and logs the true energy.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

SCRIPT_FOLDER = Path(__file__).resolve().parent
REPOSITORY = SCRIPT_FOLDER.parents[1]
PROGRAMS = Path(os.environ.get("JOULEMAP_BUILD", REPOSITORY / "build")).resolve() / "bin"
JOULEMAP_PROGRAM = PROGRAMS / "joulemap"
SIMULATED_MACHINE = PROGRAMS / "joulemap-simulated-machine"

sys.path.insert(0, str(REPOSITORY / "tests" / "simulated_machine"))
from truth import TruthLog  # noqa: E402  found through the path above

EXIT_NOT_PERMITTED = 77


class NotPermittedError(Exception):
    """The counters cannot be mounted at /sys here; the message contains the reason."""


class SimulatedMachineError(Exception):
    """The simulated machine, or the command on it, failed."""


class PowerLaw(NamedTuple):
    """Power of the simulated package: idle + (max - idle) * utilisation ** gamma."""

    idle_w: float = 18
    max_w: float = 95
    gamma: float = 0.8

    def power_w(self, utilisation: float) -> float:
        """Mean power at a utilisation of all CPUs, 0 to 1."""
        return self.idle_w + (self.max_w - self.idle_w) * utilisation**self.gamma

    def options(self) -> List[str]:
        """Returns the law as options of the simulator's command line."""
        return ["--idle", f"{self.idle_w:g}", "--max", f"{self.max_w:g}", "--gamma", f"{self.gamma:g}"]


def scratch_folder(purpose: str) -> "tempfile.TemporaryDirectory[str]":
    """A temporary folder, in memory if possible: the journal of a disk delays the counters."""
    shared_memory = Path("/dev/shm")
    parent: Optional[str] = str(shared_memory) if os.access(shared_memory, os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix=f"joulemap-bench-{purpose}-", dir=parent)


def run_on_simulated_machine(root: Path, command: List[str], options: List[str], timeout_s: float = 1800) -> TruthLog:
    """Runs a command on a simulated machine whose files are in root, and returns the true energies."""
    program = [str(SIMULATED_MACHINE), "--root", str(root), "--mount", *options]
    try:
        completed_process = subprocess.run(
            [*program, "--", *command],
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    except subprocess.TimeoutExpired as error:
        raise SimulatedMachineError(f"no end after {error.timeout:.0f} s: {' '.join(command)}") from error
    if completed_process.returncode == EXIT_NOT_PERMITTED:
        raise NotPermittedError(" ".join(completed_process.stderr.split()))
    if completed_process.returncode != 0:
        raise SimulatedMachineError(
            f"exit code {completed_process.returncode}: {' '.join(command)}\n{completed_process.stderr.strip()}"
        )
    return TruthLog(str(root / "truth.csv"))


def check_permission() -> None:
    """Raises NotPermittedError where the counters cannot be mounted at /sys, before any time is spent."""
    with scratch_folder("check") as folder:
        run_on_simulated_machine(Path(folder) / "machine", ["true"], [])


def complete_powercap_tree(powercap: Path = Path("/sys/class/powercap")) -> None:
    """Adds the link that sysfs gives every device and that codecarbon uses to find the zones.

    Without it codecarbon fails on the simulator, which would be a defect of the simulator and not of codecarbon.
    """
    link = powercap / "intel-rapl" / "subsystem"
    if not link.is_symlink():
        link.symlink_to("../../../../class/powercap")


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def describe_this_machine() -> Dict[str, str]:
    """Describes the machine as far as a reader needs it to interpret the numbers, without identifying it."""
    kernel = re.match(r"[0-9.]+", platform.release())
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    flags = re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE)
    return {
        "cpu": _cpu_model(),
        "cpus": str(os.cpu_count()),
        "kind": "virtual machine" if flags else "not known to be a virtual machine",
        "kernel": "Linux " + (kernel.group(0).rstrip(".") if kernel else "of unknown version"),
        "python": platform.python_version(),
    }
