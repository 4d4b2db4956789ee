# SPDX-License-Identifier: Apache-2.0
"""Measures how fast the host currently is, by timing trivial kernel launches.

A host-bound step takes as long as the host needs. On a shared machine, another tenant may use the sibling hyperthread
of a processor: Python code then takes 1.5 times as long, for a second or a minute. Network energy is measured on an
undisturbed host. To find one, this module times a few launches on every processor and moves the process to the
fastest ones.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Callable

TIMED_LAUNCH_COUNT = 60
# Number of processors kept, for the Python thread and the autograd threads.
LAUNCH_PROCESSOR_COUNT = 3
AUTOGRAD_THREAD_NAME = "pt_autograd"


class HostSpeedMeter:
    """Launch speed of the host. One instance per process, used from its main thread."""

    def __init__(self, launch_kernel: Callable[[], Any], synchronize: Callable[[], Any]) -> None:
        self._launch_kernel, self._synchronize = launch_kernel, synchronize
        self._allowed_processors = sorted(os.sched_getaffinity(0))
        self.fastest_launch_s = min(self.time_launch_s() for _ in range(5))

    def time_launch_s(self) -> float:
        """Returns the current duration of one launch in seconds: the faster of two tries, since the first has cold
        caches."""
        times_s = []
        for _ in range(2):
            self._synchronize()
            begin_s = time.perf_counter()
            for _ in range(TIMED_LAUNCH_COUNT):
                self._launch_kernel()
            times_s.append((time.perf_counter() - begin_s) / TIMED_LAUNCH_COUNT)
        self._synchronize()
        return min(times_s)

    def move_to_fastest_processors(self) -> float:
        """Moves the launching threads to the processors that are fastest now; returns the duration of a launch there
        in s."""
        launch_times = []
        for processor in self._allowed_processors:
            os.sched_setaffinity(0, {processor})
            launch_times.append((self.time_launch_s(), processor))
        launch_times.sort()
        self._pin_threads({processor for _, processor in launch_times[:LAUNCH_PROCESSOR_COUNT]})
        self.fastest_launch_s = min(self.fastest_launch_s, launch_times[0][0])
        return launch_times[0][0]

    def _pin_threads(self, processors: set[int]) -> None:
        """Pins the launching threads to `processors`. Other threads may run on any allowed processor, to stay out of
        the way."""
        for thread_folder in Path("/proc/self/task").iterdir():
            try:
                is_launching_thread = int(thread_folder.name) == os.getpid() or (
                    thread_folder / "comm"
                ).read_text().startswith(AUTOGRAD_THREAD_NAME)
                os.sched_setaffinity(
                    int(thread_folder.name), processors if is_launching_thread else set(self._allowed_processors)
                )
            except (ProcessLookupError, FileNotFoundError):  # the thread has just ended
                continue
