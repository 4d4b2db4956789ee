# SPDX-License-Identifier: Apache-2.0
"""Samples the function in which the main thread runs, 20 times a second, for `report --by function` where no operations
are recorded. During untraced steps it samples 4 times a second, because each sample takes the GIL from a CPU-bound
program.

A sampling thread reads the innermost frame of the main thread. It starts through _thread, so that the program does
not find it among its threads. Its jitter comes from a private generator, so the program's random numbers do not
change.
"""

from __future__ import annotations

import _thread
import os
import random
import sys
import threading
import time

from . import _capture

SAMPLE_PERIOD_S, UNTRACED_SAMPLE_PERIOD_S = 0.05, 0.25
_PACKAGE_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


class FunctionSampler:
    """One instance per process. The child of a fork has no sampling thread until it calls start()."""

    def __init__(self) -> None:
        self._is_running = False
        self._thread_generation = 0  # number of the current thread: a thread with an older number exits
        self.uses_untraced_sample_period = False
        os.register_at_fork(after_in_child=self.stop)

    def start(self) -> None:
        if self._is_running or not _capture.is_recording():
            return
        self._is_running = True
        self._thread_generation += 1
        _thread.start_new_thread(self._sample_in_thread, (self._thread_generation,))

    def stop(self) -> None:
        self._is_running = False

    def _sample_in_thread(self, generation: int) -> None:
        jitter_generator = random.Random(0)
        main_thread_id = threading.main_thread().ident
        last_sample_ns = time.monotonic_ns()
        while self._is_running and self._thread_generation == generation:
            time.sleep(
                (UNTRACED_SAMPLE_PERIOD_S if self.uses_untraced_sample_period else SAMPLE_PERIOD_S)
                * (0.5 + jitter_generator.random())
            )
            now_ns = time.monotonic_ns()
            frame = sys._current_frames().get(main_thread_id)
            if frame is not None:
                _capture.function_sample(find_program_function(frame), now_ns - last_sample_ns)
            last_sample_ns = now_ns
            del frame  # releases the local variables of the program, so that their lifetime does not change


def find_program_function(frame) -> str:
    """The function of the innermost frame outside this package: "torch.nn.functional.conv2d", "__main__.augment"."""
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE_FOLDER):
        frame = frame.f_back
    code = frame.f_code
    return f"{frame.f_globals.get('__name__', '?')}.{getattr(code, 'co_qualname', code.co_name)}"


function_sampler = FunctionSampler()
