# SPDX-License-Identifier: Apache-2.0
"""Measures estimates under a simulated load; run as a script on the simulated machine: estimate_scene.py PLAN RESULT.

Estimates use /proc/stat, which contains the work of all processes on the machine that runs the benchmark. This script
mounts its own file over it (the simulated machine has its own mount namespace). The file shows CPUs that are busy for
exactly the given share, so the true power is the law's power at that share.
"""

import ctypes
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List

from machine import SCRIPT_FOLDER, PowerLaw, run_on_simulated_machine, scratch_folder
from scene import MeterPlan, close_windows, open_meters, open_windows

_MS_BIND = 4096  # <sys/mount.h>
_PACKAGE_ZONE_FOLDER = Path("/sys/class/powercap/intel-rapl:0")
_UPDATE_PERIOD_S = 0.005


class FakeProcStat:
    """/proc/stat of a machine with a given utilisation."""

    def __init__(self, file: Path) -> None:
        self._cpus = os.cpu_count() or 1
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._busy_share = 0.0
        self._busy_s = self._idle_s = 1000.0
        self._last = time.monotonic()
        self._lock = threading.Lock()
        self._stat_fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        self._update()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(str(file).encode(), b"/proc/stat", None, _MS_BIND, None) != 0:
            raise OSError(ctypes.get_errno(), "mount over /proc/stat")
        threading.Thread(target=self._run, daemon=True).start()

    def set_utilisation(self, share: float) -> None:
        """Sets the utilisation from now on."""
        self._update()
        self._busy_share = share

    def _run(self) -> None:
        while True:
            time.sleep(_UPDATE_PERIOD_S)
            self._update()

    def _update(self) -> None:
        with self._lock:
            current_time_s = time.monotonic()
            self._busy_s += self._busy_share * (current_time_s - self._last)
            self._idle_s += (1 - self._busy_share) * (current_time_s - self._last)
            self._last = current_time_s
            os.pwrite(self._stat_fd, self._format_proc_stat().encode(), 0)

    def _format_proc_stat(self) -> str:
        """The content of /proc/stat, with numbers of fixed width: a reader must never see the rest of a longer text."""

        def line(name: str, cpus: int) -> str:
            busy, idle = (int(seconds * cpus * self._ticks_per_s) for seconds in (self._busy_s, self._idle_s))
            return f"{name:6} {busy:12} 0 0 {idle:12} 0 0 0 0 0 0\n"

        return line("cpu", self._cpus) + "".join(line(f"cpu{cpu}", 1) for cpu in range(self._cpus))


def run_scene(plan_path: Path, result_path: Path) -> None:
    """Runs on the simulated machine."""
    plan = json.loads(plan_path.read_text(encoding="utf-8"))
    for name in ["power_limit", "max_power"]:
        (_PACKAGE_ZONE_FOLDER / f"constraint_0_{name}_uw").write_text(
            f"{plan['limit_w'] * 1e6:.0f}\n", encoding="ascii"
        )
    cpus = FakeProcStat(result_path.parent / "stat")
    meters = open_meters([MeterPlan(*meter) for meter in plan["meters"]], result_path.parent)
    results: List[Dict[str, Any]] = []
    for share in plan["shares"]:
        for meter in meters:
            meter.prepare()
        cpus.set_utilisation(share)
        open_windows(meters)
        time.sleep(plan["seconds"])
        results.append({"busy_share": share, "meters": close_windows(meters)})
    for meter in meters:
        meter.close()
    result_path.write_text(json.dumps(results), encoding="utf-8")


def run_scene_on_simulated_machine(
    meters: List[MeterPlan], shares: List[float], limit_w: float, seconds: float
) -> List[Dict[str, Any]]:
    """Runs outside: returns each meter's estimate at each utilisation, on a machine that states a limit."""
    with scratch_folder("estimate") as name:
        folder = Path(name)
        plan = {"meters": meters, "shares": shares, "limit_w": limit_w, "seconds": seconds}
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        scene_arguments = [
            str(SCRIPT_FOLDER / "estimate_scene.py"),
            str(folder / "plan.json"),
            str(folder / "result.json"),
        ]
        run_on_simulated_machine(folder / "machine", [sys.executable, *scene_arguments], PowerLaw().options())
        return json.loads((folder / "result.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    run_scene(Path(sys.argv[1]), Path(sys.argv[2]))
