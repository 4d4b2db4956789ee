# SPDX-License-Identifier: Apache-2.0
"""Dithering: short pauses at random points of the program, which make identical steps distinguishable (`record
--dither`).

With identical steps, every sample of a GPU power sensor contains the same mixture of kernels. If the GPU idles for a
moment within a step, the samples around the pause contain only the kernels before and after it, and idle power. A
pause precedes a module's call, its part of the backward pass, or an optimizer step. The GPU is synchronized first:
otherwise a pause of the host would vanish in a longer queue, or fall on other kernels. A pause computes nothing and
draws no random number of the program, so results stay bit-identical. Pauses are regions, which a report sums.
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
from ._torch_versions import get_is_compiling

DITHER_REGION = "joulemap.dither"
MAX_PAUSED_TIME_SHARE = 0.01
# Long enough to show in the power history of an NVIDIA GPU (a value every 20 ms, time constant 12 ms).
MIN_PAUSE_S, MAX_PAUSE_S = 0.02, 0.04


class PauseDither:
    """Any thread may call maybe_pause(); one thread pauses at a time."""

    def __init__(self, torch, seed: int, clock: Callable[[], float] = time.monotonic, sleep=time.sleep) -> None:
        self._torch, self._clock, self._sleep = torch, clock, sleep
        self._random_generator = random.Random(seed)
        self._owner_pid = os.getpid()
        self._lock = threading.Lock()
        self._first_call_s: Optional[float] = None  # time of the first call: earlier work is not delayed
        self._next_pause_s = 0.0
        self.paused_s = 0.0

    def _draw_gap_s(self) -> float:
        # The mean share of pauses is 0.9 of MAX_PAUSED_TIME_SHARE. At the limit, the time of a pause would no longer be
        # random.
        return self._random_generator.expovariate(0.9 * MAX_PAUSED_TIME_SHARE / ((MIN_PAUSE_S + MAX_PAUSE_S) / 2))

    def maybe_pause(self) -> None:
        """Called at each point where the program may be paused."""
        if self._clock() < self._next_pause_s or not self._lock.acquire(blocking=False):
            return
        try:
            self._pause()
        except Exception as error:  # noqa: BLE001 - must not reach the program
            self._stop_dithering(f"{type(error).__name__}: {error}")
        finally:
            self._lock.release()

    def _pause(self) -> None:
        now_s = self._clock()
        if self._first_call_s is None:
            self._first_call_s = now_s
            self._next_pause_s = now_s + self._draw_gap_s()
        if now_s < self._next_pause_s:
            return  # another thread may have just paused
        pause_length_s = self._random_generator.uniform(MIN_PAUSE_S, MAX_PAUSE_S)
        # Skips the pause if it would exceed MAX_PAUSED_TIME_SHARE of the time: earlier sleeps may have taken longer than
        # requested.
        if self.paused_s + pause_length_s > MAX_PAUSED_TIME_SHARE * (now_s - self._first_call_s):
            self._next_pause_s = self._first_call_s + (self.paused_s + MAX_PAUSE_S) / MAX_PAUSED_TIME_SHARE
            return
        if self._is_pause_forbidden():
            return
        if self._torch.cuda.is_initialized():
            self._torch.cuda.synchronize()
        begin_s = self._clock()  # before region_push: other load on the machine may delay the marks of the region
        interface.region_push(DITHER_REGION)
        try:
            self._sleep(pause_length_s)
        finally:
            interface.region_pop()
            end_s = self._clock()
            self.paused_s += end_s - begin_s
            self._next_pause_s = end_s + self._draw_gap_s()

    def _is_pause_forbidden(self) -> bool:
        cuda = self._torch.cuda
        if os.getpid() != self._owner_pid:
            self._next_pause_s = float("inf")  # never: this is the child of a fork, such as a data loader's worker
            return True
        distributed = self._torch.distributed
        if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
            self._stop_dithering("torch.distributed is active: every process would wait for the pauses of all")
            return True
        return not _capture.is_on() or (cuda.is_initialized() and cuda.is_current_stream_capturing())

    def _stop_dithering(self, reason: str) -> None:
        self._next_pause_s = float("inf")
        interface.diagnose("not_dithered", f"dithering stopped: {reason}")

    def wrap_call(self, call: Callable) -> Callable:
        """Wraps a __call__ of modules, which may then be paused."""
        maybe_pause = self.maybe_pause

        @functools.wraps(call)
        def __call__(module, *args, **kwargs):
            maybe_pause()
            return call(module, *args, **kwargs)

        return __call__

    def wrap_hook(self, hook: Callable) -> Callable:
        """Wraps the hook of an autograd node that marks the beginning of a module's backward pass."""
        maybe_pause = self.maybe_pause

        def pausing_hook(*args):
            maybe_pause()
            return hook(*args)

        return pausing_hook


def install(torch, module_calls, seed_text: str) -> PauseDither:
    """`seed_text`: a number; any other text selects a random seed."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    seed = int(seed_text) if seed_text.isdigit() else int.from_bytes(os.urandom(4), "little")
    pause_dither = PauseDither(torch, seed)
    module_calls.wrap_calls(pause_dither.wrap_call)
    is_compiling = get_is_compiling(torch)

    def before_optimizer_step(optimizer, args, kwargs):
        if not is_compiling():
            pause_dither.maybe_pause()

    register_optimizer_step_pre_hook(before_optimizer_step)
    interface.fact("dither_seed", seed)
    return pause_dither
