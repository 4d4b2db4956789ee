# SPDX-License-Identifier: Apache-2.0
"""Dithering: short pauses at random places of the program, so that equal steps are less equal (`record --dither`).

Every row that a GPU's sensor gives of equal steps holds the same mixture of kernels. Where the GPU stands still for a moment
in the middle of a step, the rows around it hold what ran just before and just after, and what it draws when it waits. A
pause comes before a module's call, before its part of the backward pass, or before an optimizer's step. First the GPU ends
what was launched: else a pause of the host would vanish in a queue that is longer than it, or end somewhere else. Nothing is
computed, no random number of the program's is drawn: results stay as they are, bit for bit. Pauses are regions, which a
report adds up.
"""

from __future__ import annotations

import functools
import os
import random
import threading
import time
from typing import Callable, Optional

from . import _capture
from . import _capture_interface as interface
from ._torch_versions import compiling_check

REGION = "joulemap.dither"
MOST_SHARE = 0.01
# As long as the history of an NVIDIA GPU's power (a value every 20 ms, a memory of 12 ms) needs to see it.
SHORTEST_S, LONGEST_S = 0.02, 0.04


class Dither:
    """Any thread may come by a place; one pauses at a time."""

    def __init__(self, torch, seed: int, clock: Callable[[], float] = time.monotonic, sleep=time.sleep) -> None:
        self._torch, self._clock, self._sleep = torch, clock, sleep
        self._random = random.Random(seed)
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._begin_s: Optional[float] = None  # when the program first came by: what it did before is not held up
        self._next_s = 0.0
        self.paused_s = 0.0

    def _gap_s(self) -> float:
        # A little less than the limit, so that chance seldom meets it: then places would not be random any more.
        return self._random.expovariate(0.9 * MOST_SHARE / ((SHORTEST_S + LONGEST_S) / 2))

    def pass_by(self) -> None:
        """Called at each place where the program may be held up."""
        if self._clock() < self._next_s or not self._lock.acquire(blocking=False):
            return
        try:
            self._pause()
        except Exception as error:  # noqa: BLE001 - the program must not notice
            self._stop(f"{type(error).__name__}: {error}")
        finally:
            self._lock.release()

    def _pause(self) -> None:
        now_s = self._clock()
        if self._begin_s is None:
            self._begin_s = now_s
            self._next_s = now_s + self._gap_s()
        if now_s < self._next_s:
            return  # or another thread has just paused
        length_s = self._random.uniform(SHORTEST_S, LONGEST_S)
        # A sleep may last longer than asked for: what the next one may take includes what the last one took too much.
        if self.paused_s + length_s > MOST_SHARE * (now_s - self._begin_s):
            self._next_s = self._begin_s + (self.paused_s + LONGEST_S) / MOST_SHARE
            return
        if self._must_not():
            return
        if self._torch.cuda.is_initialized():
            self._torch.cuda.synchronize()
        interface.region_push(REGION)
        begin_s = self._clock()
        try:
            self._sleep(length_s)
        finally:
            end_s = self._clock()
            self.paused_s += end_s - begin_s
            self._next_s = end_s + self._gap_s()
            interface.region_pop()

    def _must_not(self) -> bool:
        cuda = self._torch.cuda
        if os.getpid() != self._process:
            self._next_s = float("inf")  # a fork's child: a worker that makes batches
            return True
        distributed = self._torch.distributed
        if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
            self._stop("several processes work together (torch.distributed): each would wait for the pauses of all")
            return True
        return not _capture.is_on() or (cuda.is_initialized() and cuda.is_current_stream_capturing())

    def _stop(self, reason: str) -> None:
        self._next_s = float("inf")
        interface.diagnose("not_dithered", f"no pauses from here on: {reason}", "see docs/attribution.md")

    def wrap(self, call: Callable) -> Callable:
        """A __call__ of modules that may be held up."""
        pass_by = self.pass_by

        @functools.wraps(call)
        def __call__(module, *args, **kwargs):
            pass_by()
            return call(module, *args, **kwargs)

        return __call__

    def wrap_hook(self, hook: Callable) -> Callable:
        """Of a node of the graph: it says whose part of the backward pass begins."""
        pass_by = self.pass_by

        def held_up(*args):
            pass_by()
            return hook(*args)

        return held_up


def install(torch, followed, seed_text: str) -> Dither:
    """`seed_text`: a number, or anything else for one by chance."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    seed = int(seed_text) if seed_text.isdigit() else int.from_bytes(os.urandom(4), "little")
    dither = Dither(torch, seed)
    followed.wrap_calls(dither.wrap)
    is_compiling = compiling_check(torch)

    def before_step(optimizer, args, kwargs):
        if not is_compiling():
            dither.pass_by()

    register_optimizer_step_pre_hook(before_step)
    interface.fact("dither_seed", seed)
    return dither
