# SPDX-License-Identifier: Apache-2.0
"""Reads the truth file of joulemap-simulated-machine: the true energies and processes, for tests to compare with.

    truth = Truth(os.environ["JOULEMAP_SIMULATED_TRUTH"])
    joules = truth.joules("package-0", start_ns, end_ns)   # of time.monotonic_ns()

Rows reach the file within 100 ms, all of them once the simulator has ended.
"""

import csv
from bisect import bisect_right
from typing import Dict, List, NamedTuple


class ProcessTruth(NamedTuple):
    """The activity of one process while the machine was simulated."""

    pid: int
    comm: str
    cpu_s: float
    joules_package: float


class TruthLog:
    """The energy of every domain as a function of time, linear between the simulator's ticks."""

    def __init__(self, path: str) -> None:
        """Reads truth.csv. Ignores an incomplete last row."""
        with open(path, encoding="ascii") as file:
            lines = file.read().split("\n")
        header = lines[0].split(",")
        if header[:2] != ["monotonic_ns", "cpu_s"]:
            raise ValueError(f"{path}: not a truth.csv")
        # The text after the last newline is empty, or a row that is still being written.
        rows = [line.split(",") for line in lines[1:-1]]
        if not rows:
            raise ValueError(f"{path}: no rows yet")
        self.domains: List[str] = header[2:]
        self._times_ns: List[int] = [int(row[0]) for row in rows]
        self._columns: Dict[str, List[float]] = {
            name: [float(row[column]) for row in rows] for column, name in enumerate(header) if column > 0
        }

    @property
    def start_ns(self) -> int:
        """CLOCK_MONOTONIC of the first row."""
        return self._times_ns[0]

    @property
    def end_ns(self) -> int:
        """CLOCK_MONOTONIC of the last row."""
        return self._times_ns[-1]

    def longest_tick_interval_ns(self, start_ns: int, end_ns: int) -> int:
        """The longest interval without a tick in a window: the maximum age of a counter value read in it.

        About 1.2 ms, unless the simulator was delayed, as on a virtual machine with a busy host. Tests may
        widen their tolerance by it.
        """
        first_index = max(0, bisect_right(self._times_ns, start_ns) - 1)
        last_index = min(len(self._times_ns) - 1, bisect_right(self._times_ns, end_ns))
        times_ns = self._times_ns[first_index : last_index + 1]
        return max((next_tick_ns - tick_ns for tick_ns, next_tick_ns in zip(times_ns, times_ns[1:])), default=0)

    def ticks_around(self, at_ns: int, count: int) -> List[int]:
        """Times of the ticks around an instant, `count` before and after it."""
        tick_index = bisect_right(self._times_ns, at_ns)
        return self._times_ns[max(0, tick_index - count) : tick_index + count]

    def joules(self, domain: str, start_ns: int, end_ns: int) -> float:
        """True energy of a domain, such as "package-0", between two instants of CLOCK_MONOTONIC.

        Raises ValueError for an instant that the truth does not cover.
        """
        return self._interpolate_column(domain, end_ns) - self._interpolate_column(domain, start_ns)

    def cpu_s(self, start_ns: int, end_ns: int) -> float:
        """CPU seconds of all processes between two instants."""
        return self._interpolate_column("cpu_s", end_ns) - self._interpolate_column("cpu_s", start_ns)

    def _interpolate_column(self, column: str, at_ns: int) -> float:
        if not self.start_ns <= at_ns <= self.end_ns:
            raise ValueError(f"{at_ns} ns is outside of the truth, {self.start_ns} to {self.end_ns} ns")
        values = self._columns[column]
        next_tick_index = bisect_right(self._times_ns, at_ns)
        if next_tick_index == len(values):
            return values[-1]
        time_0, time_1 = self._times_ns[next_tick_index - 1], self._times_ns[next_tick_index]
        value_0, value_1 = values[next_tick_index - 1], values[next_tick_index]
        return value_0 + (value_1 - value_0) * (at_ns - time_0) / (time_1 - time_0)


def read_process_truth(path: str) -> List[ProcessTruth]:
    """Reads truth_processes.csv, which exists once the simulator has ended."""
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        return [
            ProcessTruth(int(row["pid"]), row["comm"], float(row["cpu_s"]), float(row["joules_package"]))
            for row in csv.DictReader(file)
        ]
