# SPDX-License-Identifier: Apache-2.0
"""The loads: busy processes that report when they began and ended. Run as a script, this is one such process.

The processes start early and wait for a request, so that the start of Python is not measured.
"""

import subprocess
import sys
import time
from pathlib import Path
from typing import List, NamedTuple, Tuple

BURST_BUSY_S = 0.070
BURST_IDLE_S = 0.030


class LoadSpan(NamedTuple):
    """Begin and end of a load, CLOCK_MONOTONIC."""

    begin_ns: int
    end_ns: int


def load_processes(shape: str, cpus: int) -> Tuple[str, int]:
    """Returns the activity and number of processes: "half" keeps half of the CPUs busy all the time."""
    return {
        "idle": ("sleep", 1),
        "steady": ("busy", 1),
        "bursts": ("burst", 1),
        "half": ("busy", max(1, cpus // 2)),
        "full": ("busy", cpus),
    }[shape]


def _be_busy_until(deadline: float) -> None:
    while time.monotonic() < deadline:
        for _ in range(200):  # mostly arithmetic instead of reads of the clock
            pass


def _run_activity(activity: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    if activity == "sleep":
        time.sleep(seconds)
    elif activity == "busy":
        _be_busy_until(deadline)
    else:
        while time.monotonic() < deadline:
            _be_busy_until(min(time.monotonic() + BURST_BUSY_S, deadline))
            time.sleep(max(0.0, min(BURST_IDLE_S, deadline - time.monotonic())))


def run_load_process() -> None:
    """Runs one process: for each line "activity seconds", does it and prints begin and end."""
    for line in sys.stdin:
        activity, seconds = line.split()
        begin_ns = time.monotonic_ns()
        _run_activity(activity, float(seconds))
        print(begin_ns, time.monotonic_ns(), flush=True)


class LoadProcesses:
    """Waiting processes, one per CPU."""

    def __init__(self, cpus: int) -> None:
        self._cpus = cpus
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(__file__).resolve())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(cpus)
        ]
        self._run([("sleep", 0.0)] * cpus)  # returns when all have started

    def run(self, shape: str, seconds: float) -> LoadSpan:
        """Runs a load and waits for its end."""
        activity, count = load_processes(shape, self._cpus)
        return self._run([(activity, seconds)] * count)

    def close(self) -> None:
        """Ends the processes."""
        for process in self._processes:
            process.communicate()

    def _run(self, tasks: List[Tuple[str, float]]) -> LoadSpan:
        assigned_processes = self._processes[: len(tasks)]
        for process, (activity, seconds) in zip(assigned_processes, tasks):
            assert process.stdin
            process.stdin.write(f"{activity} {seconds}\n")
            process.stdin.flush()
        spans = []
        for process in assigned_processes:
            assert process.stdout
            spans.append([int(word) for word in process.stdout.readline().split()])
        return LoadSpan(min(span[0] for span in spans), max(span[1] for span in spans))


if __name__ == "__main__":
    run_load_process()
