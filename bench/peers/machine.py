# SPDX-License-Identifier: Apache-2.0
"""The machines of the benchmark: the real one, in words, and the simulated one, started for a command.

The simulated machine is what makes an error in per cent possible: it shows counters that every tool reads in
their usual place, /sys/class/powercap, and writes down what the truth was.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
PROGRAMS = Path(os.environ.get("JOULEMAP_BUILD", REPOSITORY / "build")).resolve() / "bin"
JOULEMAP = PROGRAMS / "joulemap"
SIMULATED_MACHINE = PROGRAMS / "joulemap-simulated-machine"

sys.path.insert(0, str(REPOSITORY / "tests" / "simulated_machine"))
from truth import Truth  # noqa: E402  the path above is where it lives

EXIT_NOT_PERMITTED = 77


class NotPermitted(Exception):
    """The counters cannot be shown at /sys here; says why."""


class MachineFailed(Exception):
    """The simulated machine, or the command on it, ended badly."""


class Law(NamedTuple):
    """How the simulated package draws power: idle + (max - idle) * utilisation ** gamma."""

    idle_w: float = 18
    max_w: float = 95
    gamma: float = 0.8

    def power_w(self, utilisation: float) -> float:
        """Mean power at a utilisation of all CPUs, 0 to 1."""
        return self.idle_w + (self.max_w - self.idle_w) * utilisation**self.gamma

    def options(self) -> List[str]:
        """The same for the simulator's command line."""
        return ["--idle", f"{self.idle_w:g}", "--max", f"{self.max_w:g}", "--gamma", f"{self.gamma:g}"]


def scratch_folder(purpose: str) -> "tempfile.TemporaryDirectory[str]":
    """A folder that is gone afterwards; in memory if possible: a disk's journal holds up the counters."""
    shared_memory = Path("/dev/shm")
    parent: Optional[str] = str(shared_memory) if os.access(shared_memory, os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix=f"joulemap-bench-{purpose}-", dir=parent)


def run_on_simulated_machine(
    root: Path, command: List[str], options: List[str], timeout_s: float = 1800
) -> Truth:
    """Runs a command on a simulated machine that lives in root, and returns what really happened."""
    program = [str(SIMULATED_MACHINE), "--root", str(root), "--mount", *options]
    try:
        done = subprocess.run(
            [*program, "--", *command],
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    except subprocess.TimeoutExpired as error:
        raise MachineFailed(f"no end after {error.timeout:.0f} s: {' '.join(command)}") from error
    if done.returncode == EXIT_NOT_PERMITTED:
        raise NotPermitted(" ".join(done.stderr.split()))
    if done.returncode != 0:
        raise MachineFailed(f"exit code {done.returncode}: {' '.join(command)}\n{done.stderr.strip()}")
    return Truth(str(root / "truth.csv"))


def check_permission() -> None:
    """Raises NotPermitted where the counters cannot be shown at /sys, before any time is spent."""
    with scratch_folder("check") as folder:
        run_on_simulated_machine(Path(folder) / "machine", ["true"], [])


def complete_powercap_tree(powercap: Path = Path("/sys/class/powercap")) -> None:
    """Adds the link that sysfs gives every device and that codecarbon goes through to find the zones.

    Where the simulator leaves it out, codecarbon gives up; that would be our fault and not codecarbon's.
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
    """What a reader needs to place the figures; nothing that would name the machine."""
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
