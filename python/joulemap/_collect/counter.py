# SPDX-License-Identifier: Apache-2.0
"""Tracks the energy counter during long runs. On an H200 it updates every 100 ms, accurate to a microsecond, and
misses no energy.

Power samples every 20 ms can alias with a network step of 20 ms; the counter cannot. Two counter updates are a whole
number of periods apart, so the power between them is exact even if an update is noticed late. A thread reads the
counter rarely, because a read takes milliseconds. Times are nanoseconds of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Callable, NamedTuple, Optional, Sequence

COUNTER_PERIOD_NS = 100_000_000
# Maximum lag between energy use and the counter showing it, ns (docs/reference/evidence.md).
COUNTER_LAG_NS = 9_000_000
COUNTER_READ_PERIOD_S = 0.03
# Least number of counter periods for a mean power.
MIN_COUNTER_PERIODS = 3


class CounterReading(NamedTuple):
    before_ns: int
    after_ns: int
    joules: float


class CounterReader(contextlib.AbstractContextManager):
    """Reads the counter from a thread while the context is open."""

    def __init__(self, read_energy_j: Callable[[], Optional[float]]) -> None:
        self._read_energy_j, self.readings = read_energy_j, []  # type: ignore[var-annotated]
        self._stop_event = threading.Event()
        self._thread = threading.Thread(target=self._read_loop, daemon=True)

    def __enter__(self) -> CounterReader:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop_event.set()
        self._thread.join()

    def _read_loop(self) -> None:
        while not self._stop_event.is_set():
            before_ns, joules = time.monotonic_ns(), self._read_energy_j()
            if joules is None:
                return
            self.readings.append(CounterReading(before_ns, time.monotonic_ns(), joules))
            self._stop_event.wait(COUNTER_READ_PERIOD_S)


def mean_power_w(readings: Sequence[CounterReading], begin_ns: int, end_ns: int) -> Optional[float]:
    """Returns the mean power in W over the whole periods between counter updates inside [begin, end); None if there
    are too few."""
    updates = [
        ((previous_reading.before_ns + current_reading.after_ns) // 2, current_reading.joules)
        for previous_reading, current_reading in zip(readings, readings[1:])
        if current_reading.joules != previous_reading.joules
        and previous_reading.before_ns >= begin_ns + COUNTER_LAG_NS
        and current_reading.after_ns <= end_ns
    ]
    if len(updates) <= MIN_COUNTER_PERIODS:
        return None
    (first_ns, first_j), (last_ns, last_j) = updates[0], updates[-1]
    period_count = round((last_ns - first_ns) / COUNTER_PERIOD_NS)
    # On a GPU with another update period, the number of updates does not match the number of periods.
    return (last_j - first_j) / (period_count * COUNTER_PERIOD_NS * 1e-9) if period_count == len(updates) - 1 else None
