# SPDX-License-Identifier: Apache-2.0
"""Captures JAX in a recorded program: install() is called after jax has been imported.

jax.jit compiles a whole function to one program. Each call is therefore a coarse scope, a region with the name of
the function, whose time is exact. JAX's own profiler traces a few calls; these traces divide the time among phases,
layers and operations. On CPUs a captured call waits for its result: JAX would return while other threads still work,
and their time would be unattributed. On GPUs nothing waits; kernels get their names through the NVTX ranges of the
program.
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
    """JAX's own profiler, for one call at a time."""

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
        except Exception as error:  # noqa: BLE001 - usually another profiler is active
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
    """Detects training steps: StepTraceAnnotation if the program uses it; otherwise each call of the function with the
    largest total time."""

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
        """Called after a program has run, when the backend is initialized."""
        if self._waits is None:
            self._waits = self.jax.default_backend() == "cpu"
            self._profiles = self._waits
            capture.fact("jax_backend", self.jax.default_backend())
        return self._waits

    def profiles(self) -> bool:
        """False on a GPU, where JAX's profiler would take the kernel records from CUPTI."""
        return self._profiles


class WatchedJit:
    """Wraps the result of jax.jit and captures each outermost call."""

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

    # The members of jax.stages.Wrapped, defined in the class because newer Pythons look them up there.

    def trace(self, *args, **kwargs):
        return self._compiled.trace(*args, **kwargs)

    def lower(self, *args, **kwargs):
        return self._compiled.lower(*args, **kwargs)

    def eval_shape(self, *args, **kwargs):
        return self._compiled.eval_shape(*args, **kwargs)

    def __reduce__(self):
        return _itself, (self._compiled,)  # copies unpickle as JAX's own function

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
    """Returns a function that is True while JAX traces a function: a call during tracing does not execute anything."""
    from jax._src import core

    clean = core.trace_state_clean
    return lambda: not clean()


def _watch_jit(jax, watcher: Watcher) -> None:
    original = jax.jit

    @functools.wraps(original)
    def jit(*args, **kwargs):
        compiled = original(*args, **kwargs)
        # In newer versions, jit(static_argnums=...) without a function returns a decorator.
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
