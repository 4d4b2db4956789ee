# SPDX-License-Identifier: Apache-2.0
"""Starts capture of `joulemap record` in the middle of a program, so that a process can be compared with itself: with
launch-bound steps, two processes differ by more than the overhead. For benchmarks only.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
import threading
import time
from typing import Callable

CAPTURE_RUN_STEPS = 3  # consecutive steps that are captured, or are not


def delay_capture() -> Callable[[], None]:
    """Delays capture; call it in a recorded program before torch is imported. The returned function starts capture."""
    watcher = next(finder for finder in sys.meta_path if type(finder).__name__ == "_FrameworkFinder")
    sys.meta_path.remove(watcher)
    library = os.environ.pop("CUDA_INJECTION64_PATH")

    def begin() -> None:
        import torch

        sys.meta_path.insert(0, watcher)
        from joulemap import _torch_capture

        _torch_capture.install(torch)
        ctypes.CDLL(library).InitializeInjection()

    return begin


class PausableClock:
    """Replaces `time` in the thread that samples functions: its sleeps do not end while capture is paused."""

    monotonic_ns = staticmethod(time.monotonic_ns)

    def __init__(self) -> None:
        self.runs = threading.Event()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self.runs.wait()


def run_captured_and_uncaptured(step: Callable[[], None], seconds: float) -> list[tuple[float, bool, bool]]:
    """Runs captured and uncaptured runs of steps in random order. Returns (seconds, captured, traced) per step."""
    from joulemap import _capture, _function_samples

    clock, random_source, steps = PausableClock(), random.Random(1), []
    _function_samples.time = clock
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        is_captured = random_source.random() < 0.5
        _capture.set_capture_enabled(is_captured)
        (clock.runs.set if is_captured else clock.runs.clear)()
        for _ in range(CAPTURE_RUN_STEPS):
            begin = time.perf_counter()
            step()
            steps.append((time.perf_counter() - begin, is_captured, is_captured and _are_modules_traced()))
    _capture.set_capture_enabled(True)
    clock.runs.set()
    return steps


def _are_modules_traced() -> bool:
    """Whether all modules are traced now: torch.nn.Module then has joulemap's __call__."""
    import torch

    return torch.nn.Module.__call__.__code__.co_filename.endswith("_torch_module_calls.py")
