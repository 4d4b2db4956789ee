# SPDX-License-Identifier: Apache-2.0
"""Watches JAX in a recorded program: install() is called once jax has been imported.

jax.jit makes one program of a whole function. So each call of one is a coarse place, a region of the function's name, whose
time is exact; a few calls are profiled by JAX itself, and the trace tells how the time divides among phases, layers and
operations. On CPUs a watched call waits for its result: JAX would return while other threads still work, and their time
would be nobody's. On GPUs nothing waits; there names go to the kernels through the program's own NVTX ranges.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import types
from typing import Optional

from . import _capture_interface as capture
from ._framework_trace import Plan, Trace
from ._jax_programs import watch_compiler


class Profiler:
    """JAX's own, for one call at a time."""

    def __init__(self, jax) -> None:
        self._profiler = jax.profiler
        self._told_cost = False

    @capture.guarded
    def start(self) -> Optional[Trace]:
        trace = Trace()
        given = {}
        if hasattr(self._profiler, "ProfileOptions"):
            options = self._profiler.ProfileOptions()
            options.host_tracer_level = 2
            options.python_tracer_level = 0
            given["profiler_options"] = options
        try:
            self._profiler.start_trace(trace.folder, **given)
        except Exception as error:  # noqa: BLE001 - somebody else is profiling, most likely
            capture.diagnose("profiler_taken", f"JAX's profiler did not start: {error}", "layers are not told")
            return None
        return trace

    @capture.guarded
    def stop(self, trace: Trace, function: str) -> None:
        begin_s = time.perf_counter()
        self._profiler.stop_trace()
        trace.keep("xplane.pb", [("region", function)])
        if not self._told_cost:
            self._told_cost = True
            cost_ms = (time.perf_counter() - begin_s) * 1e3
            capture.fact("jax_profiler", f"a profiled call took {cost_ms:.1f} ms more, outside of its place")


class Steps:
    """The program's own, where it uses StepTraceAnnotation; else each call of the function that takes most of the time."""

    def __init__(self) -> None:
        self._told = False
        self._spent_s: dict = {}
        self._step_function: Optional[str] = None

    def tell(self) -> None:
        self._told = True
        capture.step()

    def on_call(self, function: str) -> None:
        if not self._told and function == self._step_function:
            capture.on_event(capture.FORWARD_INFER)

    def on_return(self, function: str, spent_s: float, was_compiled: bool) -> None:
        if self._told or was_compiled:
            return
        self._spent_s[function] = self._spent_s.get(function, 0.0) + spent_s
        leading = self._spent_s.get(self._step_function, 0.0) if self._step_function else 0.0
        if self._step_function is None or self._spent_s[function] > 2 * leading:
            self._step_function = function


class Watcher:
    def __init__(self, jax) -> None:
        self.jax = jax
        self.profiler = Profiler(jax)
        self.steps = Steps()
        self.is_tracing = _tracing_check(jax)
        self.main_thread = threading.main_thread()
        self._waits: Optional[bool] = None
        self._profiles = True

    def waits(self) -> bool:
        """Asked when a program has run, so that the backend exists already."""
        if self._waits is None:
            self._waits = self.jax.default_backend() == "cpu"
            self._profiles = self._waits
            capture.fact("jax_backend", self.jax.default_backend())
        return self._waits

    def profiles(self) -> bool:
        """On a GPU JAX's profiler would take the kernel records for itself."""
        return self._profiles


class WatchedJit:
    """What jax.jit gives, and what is done with each outermost call."""

    def __init__(self, compiled, watcher: Watcher) -> None:
        functools.update_wrapper(self, compiled, updated=())
        self._compiled = compiled
        self._watcher = watcher
        self._name = getattr(compiled, "__name__", "function")
        self._plan = Plan()
        self._place = 0
        self._calls = 0

    def __getattr__(self, name: str):
        return getattr(self._compiled, name)

    # What jax.stages.Wrapped asks for, as members of the class: newer Pythons look for them there.

    def trace(self, *args, **kwargs):
        return self._compiled.trace(*args, **kwargs)

    def lower(self, *args, **kwargs):
        return self._compiled.lower(*args, **kwargs)

    def eval_shape(self, *args, **kwargs):
        return self._compiled.eval_shape(*args, **kwargs)

    def __reduce__(self):
        return _itself, (self._compiled,)  # whoever gets a copy has JAX's own

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args, **kwargs):
        watcher = self._watcher
        if watcher.is_tracing() or threading.current_thread() is not watcher.main_thread:
            return self._compiled(*args, **kwargs)
        watcher.steps.on_call(self._name)
        self._calls += 1
        trace = watcher.profiler.start() if watcher.profiles() and self._plan.is_due() else None
        if self._place == 0:
            self._place = capture.place_in(0, capture.REGION, self._name)
        place = capture.place_in(self._place, capture.PHASE, "compile") if self._calls == 1 else self._place
        begin_s = time.perf_counter()
        depth = capture.enter(place)
        try:
            result = self._compiled(*args, **kwargs)
            if watcher.waits():
                watcher.jax.block_until_ready(result)
            return result
        finally:
            capture.leave_to(depth)
            watcher.steps.on_return(self._name, time.perf_counter() - begin_s, self._calls == 1)
            if trace is not None:
                watcher.profiler.stop(trace, self._name)


def _itself(compiled):
    return compiled


def _tracing_check(jax):
    """Whether a function is being traced: a call within one is no call of the program."""
    from jax._src import core

    clean = core.trace_state_clean
    return lambda: not clean()


def _watch_jit(jax, watcher: Watcher) -> None:
    original = jax.jit

    @functools.wraps(original)
    def jit(*args, **kwargs):
        compiled = original(*args, **kwargs)
        # jit(static_argnums=...) without a function is a decorator in newer versions.
        if not args and "fun" not in kwargs:
            return lambda function: WatchedJit(compiled(function), watcher)
        return WatchedJit(compiled, watcher)

    jax.jit = jit


def _watch_steps(jax, watcher: Watcher) -> None:
    original, tell = jax.profiler.StepTraceAnnotation, capture.guarded(watcher.steps.tell)

    class StepTraceAnnotation(original):
        def __enter__(self):
            tell()
            return super().__enter__()

    StepTraceAnnotation.__doc__ = original.__doc__
    StepTraceAnnotation.__qualname__ = original.__qualname__
    StepTraceAnnotation.__module__ = original.__module__
    jax.profiler.StepTraceAnnotation = StepTraceAnnotation


@capture.guarded
def install(jax) -> None:
    if not capture.is_recording() or os.environ.get("JOULEMAP_TRACE") in ("off", "kernels"):
        return
    watcher = Watcher(jax)
    _watch_jit(jax, watcher)
    _watch_steps(jax, watcher)
    watch_compiler()
    capture.fact("jax", jax.__version__)
