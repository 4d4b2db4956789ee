# SPDX-License-Identifier: Apache-2.0
"""How fast the host is at the moment, told by how long it takes to launch nothing much.

A step that waits for the host takes as long as the host needs. On a machine that is shared a processor's sibling may
work for somebody else: then everything that Python does takes half as long again, for a second or for a minute. What a
network draws is measured where the host is left alone, which this finds out: on every processor a few launches are
timed, and the process goes to the quickest ones.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Callable

LAUNCHES = 60
# Of the processors, which Python's thread and autograd's may then use.
KEPT = 3
AUTOGRAD = "pt_autograd"


class Host:
    """Of one process, used from its main thread."""

    def __init__(self, launch: Callable[[], Any], wait: Callable[[], Any]) -> None:
        self._launch, self._wait = launch, wait
        self._allowed = sorted(os.sched_getaffinity(0))
        self.quickest_s = min(self.launch_s() for _ in range(5))

    def launch_s(self) -> float:
        """Of one launch now; the faster of two tries, since the first finds cold caches."""
        tries = []
        for _ in range(2):
            self._wait()
            begin = time.perf_counter()
            for _ in range(LAUNCHES):
                self._launch()
            tries.append((time.perf_counter() - begin) / LAUNCHES)
        self._wait()
        return min(tries)

    def find_quiet(self) -> float:
        """Moves the threads that launch to the processors that are quickest now; a launch there, in seconds."""
        by_processor = []
        for processor in self._allowed:
            os.sched_setaffinity(0, {processor})
            by_processor.append((self.launch_s(), processor))
        by_processor.sort()
        self._use({processor for _, processor in by_processor[:KEPT]})
        self.quickest_s = min(self.quickest_s, by_processor[0][0])
        return by_processor[0][0]

    def _use(self, processors: set[int]) -> None:
        """Others, which compute on processors or read counters, may go anywhere: they would only be in the way."""
        for task in Path("/proc/self/task").iterdir():
            try:
                launches = int(task.name) == os.getpid() or (task / "comm").read_text().startswith(AUTOGRAD)
                os.sched_setaffinity(int(task.name), processors if launches else set(self._allowed))
            except (ProcessLookupError, FileNotFoundError):  # a thread that has just ended
                continue
