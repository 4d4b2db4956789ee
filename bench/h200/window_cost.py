#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of one empty window with one tool: the best of several rounds, in nanoseconds, as JSON."""

from __future__ import annotations

import json
import sys
import time


def joulemap():
    import joulemap as jm

    jm.start()
    return lambda: jm.end(jm.begin("window")), 5000


def zeus():
    from zeus.monitor import ZeusMonitor

    monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[])

    def window() -> None:
        monitor.begin_window("window", sync_execution=False)
        monitor.end_window("window", sync_execution=False)

    return window, 20


def pyjoules():
    from pyJoules.device.nvidia_device import NvidiaGPUDevice
    from pyJoules.energy_meter import EnergyMeter

    domains = NvidiaGPUDevice.available_domains()
    device = NvidiaGPUDevice()
    device.configure(domains=domains)
    meter = EnergyMeter([device])

    def window() -> None:
        meter.start()
        meter.stop()

    return window, 20


def codecarbon():
    from codecarbon import OfflineEmissionsTracker

    tracker = OfflineEmissionsTracker(
        country_iso_code="CHE", save_to_file=False, log_level="critical", allow_multiple_runs=True
    )
    tracker.start()
    number = iter(range(1_000_000))

    def window() -> None:
        name = f"window{next(number)}"
        tracker.start_task(name)
        tracker.stop_task(name)

    return window, 3


def main() -> None:
    window, calls = {"joulemap": joulemap, "zeus": zeus, "pyjoules": pyjoules, "codecarbon": codecarbon}[sys.argv[1]]()
    window()
    min_window_ns = float("inf")
    for _ in range(20 if calls > 100 else 3):
        begin = time.perf_counter_ns()
        for _ in range(calls):
            window()
        min_window_ns = min(min_window_ns, (time.perf_counter_ns() - begin) / calls)
    print(json.dumps({"tool": sys.argv[1], "ns": min_window_ns}))


if __name__ == "__main__":
    main()
