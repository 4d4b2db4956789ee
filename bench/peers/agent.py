# SPDX-License-Identifier: Apache-2.0
"""Runs one peer in its own process, controlled over a pipe: agent.py NAME JSON-OF-SETTINGS.

Separate processes keep peers from disturbing one another and separate their CPU times, and a peer that raises does
not end the benchmark. For each line on standard input (prepare, begin, end) it prints one line of JSON. `prepare` does
everything that the peer's interface allows before the window.
"""

import json
import logging
import multiprocessing
import os
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Optional

JOULES_PER_KWH = 3.6e6


class PyJoules:
    """pyJoules: reads the counters on request only."""

    def __init__(self, settings: Dict[str, Any]) -> None:
        from pyJoules.device import DeviceFactory
        from pyJoules.device.rapl_device import RaplDramDomain, RaplPackageDomain
        from pyJoules.energy_meter import EnergyMeter

        self._meter = EnergyMeter(DeviceFactory.create_devices([RaplPackageDomain(0), RaplDramDomain(0)]))

    def prepare(self) -> None:
        """Makes one trial: the first reading imports modules and opens files."""
        self._meter.start()
        self._meter.stop()

    def begin(self) -> None:
        self._meter.start(tag="load")

    def end(self) -> Dict[str, Optional[float]]:
        self._meter.stop()
        energy_uj = self._meter.get_trace()["load"].energy
        return {"package_j": energy_uj["package_0"] * 1e-6, "dram_j": energy_uj["dram_0"] * 1e-6}


class Zeus:
    """Zeus: reads the counters at both ends; one helper process per counter counts the wraps."""

    def __init__(self, settings: Dict[str, Any]) -> None:
        from zeus.monitor import ZeusMonitor

        self._monitor = ZeusMonitor(gpu_indices=[])

    def prepare(self) -> None:
        """Opens a first window, which starts the helpers: they import all of Zeus again, outside of measured
        windows."""
        self._monitor.begin_window("trial")
        self._monitor.end_window("trial")
        _wait_until_helpers_idle()

    def begin(self) -> None:
        self._monitor.begin_window("load")

    def end(self) -> Dict[str, Optional[float]]:
        result = self._monitor.end_window("load")
        if result.cpu_energy is None:
            raise RuntimeError("cpu_energy is None")
        dram_j = result.dram_energy[0] if result.dram_energy else None
        return {"package_j": result.cpu_energy[0], "dram_j": dram_j}


class CodeCarbon:
    """codecarbon: a thread reads the counters every measure_power_secs, 15 s by default."""

    def __init__(self, settings: Dict[str, Any]) -> None:
        from codecarbon import OfflineEmissionsTracker

        self._folder = tempfile.TemporaryDirectory(prefix="joulemap-bench-codecarbon-")
        self._make_tracker = lambda: OfflineEmissionsTracker(
            country_iso_code="FRA", output_dir=self._folder.name, log_level="error", **settings
        )
        self._tracker: Any = None

    def prepare(self) -> None:
        """Creates the tracker: it serves one run only, and its slow detection of hardware must precede the window."""
        self._tracker = self._make_tracker()
        self._tracker.get_detected_hardware()

    def begin(self) -> None:
        self._tracker.start()

    def end(self) -> Dict[str, Optional[float]]:
        self._tracker.stop()
        data = getattr(self._tracker, "final_emissions_data", None)
        if data is None:
            raise RuntimeError("no result")
        return {"package_j": data.cpu_energy * JOULES_PER_KWH, "dram_j": None}


PEER_METERS: Dict[str, Callable[[Dict[str, Any]], Any]] = {
    "pyjoules": PyJoules,
    "zeus": Zeus,
    "codecarbon": CodeCarbon,
}


def _wait_until_helpers_idle(timeout_s: float = 60) -> None:
    """Waits until helper processes have started: they then use hardly any CPU time for half a second."""
    pids = [child.pid for child in multiprocessing.active_children() if child.pid]
    deadline = time.monotonic() + timeout_s
    used_s = -1.0
    while time.monotonic() < deadline:
        now_s = sum(time.clock_gettime((~pid << 3) | 2) for pid in pids)  # clock_getcpuclockid(3)
        if now_s - used_s < 0.005 and now_s > 0.2 * len(pids):
            return
        used_s = now_s
        time.sleep(0.5)


class _LastErrorHandler(logging.Handler):
    """Keeps the last error: codecarbon logs errors instead of raising them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: List[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage().strip())


def answer_requests(name: str, settings: Dict[str, Any]) -> None:
    """Answers requests until standard input ends."""
    # Peers print to standard output, which is reserved for the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    words = _LastErrorHandler()
    logging.getLogger("codecarbon").addHandler(words)
    peer: Any = None
    broken: Optional[str] = None  # first error of this round
    begin_ns = 0
    for line in sys.stdin:
        task = line.strip()
        answer: Dict[str, Any] = {}
        if task == "prepare":
            broken = None
            words.lines.clear()
        try:
            if task == "prepare":
                peer = peer or PEER_METERS[name](settings)
                peer.prepare()
            elif task == "begin" and not broken:
                peer.begin()
                begin_ns = time.monotonic_ns()
            elif task == "end" and not broken:
                end_ns = time.monotonic_ns()
                answer = {**peer.end(), "begin_ns": begin_ns, "end_ns": end_ns}
        except Exception as error:  # a peer may raise anything; the table shows it
            broken = f"{type(error).__name__}: {error}"
        answer["messages"] = words.lines
        if broken:
            answer["error"] = broken
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    answer_requests(sys.argv[1], json.loads(sys.argv[2]))
