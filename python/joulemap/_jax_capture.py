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
from ._compiled_steps import StepDetector
from ._framework_trace import TracingSchedule, FrameworkTrace
from ._jax_programs import watch_compiler


class JaxProfiler:
    """JAX's own profiler, for one call at a time."""

    def __init__(self, jax) -> None:
        self._profiler = jax.profiler
        self._has_recorded_cost = False

    @capture.suppress_failures
    def start(self) -> Optional[FrameworkTrace]:
        trace = FrameworkTrace()
        start_options = {}
        if hasattr(self._profiler, "ProfileOptions"):
            profiler_options = self._profiler.ProfileOptions()
            profiler_options.host_tracer_level = 2
            profiler_options.python_tracer_level = 0
            start_options["profiler_options"] = profiler_options
        try:
            self._profiler.start_trace(trace.folder, **start_options)
        except Exception as error:  # noqa: BLE001 - usually another profiler is active
            message = f"JAX's profiler did not start, so layers have no energy: {error}"
            capture.diagnose("profiler_taken", message, "stop other profilers of the program")
            return None
        return trace

    @capture.suppress_failures
    def stop(self, trace: FrameworkTrace, function: str) -> None:
        begin_s = time.perf_counter()
        self._profiler.stop_trace()
        trace.store_trace("xplane.pb", [("region", function)])
        if not self._has_recorded_cost:
            self._has_recorded_cost = True
            cost_ms = (time.perf_counter() - begin_s) * 1e3
            capture.fact("jax_profiler", f"a profiled call took {cost_ms:.1f} ms more, outside of its scope")


class JaxCapture:
    def __init__(self, jax) -> None:
        self.jax = jax
        self.profiler = JaxProfiler(jax)
        self.steps = StepDetector()
        self.is_tracing = _make_tracing_check(jax)
        self.main_thread = threading.main_thread()
        self._waits_for_result: Optional[bool] = None
        self._can_profile = True

    def waits_for_result(self) -> bool:
        """Whether a captured call waits for its result: only on CPUs. Called after the first call of a compiled
        function, when JAX has chosen its backend."""
        if self._waits_for_result is None:
            self._waits_for_result = self.jax.default_backend() == "cpu"
            self._can_profile = self._waits_for_result
            capture.fact("jax_backend", self.jax.default_backend())
        return self._waits_for_result

    def can_profile(self) -> bool:
        """False on a GPU, where JAX's profiler would take the kernel records from CUPTI."""
        return self._can_profile


class TracedJit:
    """Wraps the result of jax.jit and captures each outermost call."""

    def __init__(self, compiled, jax_capture: JaxCapture) -> None:
        functools.update_wrapper(self, compiled, updated=())
        self._compiled = compiled
        self._jax_capture = jax_capture
        self._function_name = getattr(compiled, "__name__", "function")
        self._tracing_schedule = TracingSchedule()
        self._region_scope = 0
        self._call_count = 0

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
        return _return_unwrapped, (self._compiled,)  # copies unpickle as JAX's own function

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args, **kwargs):
        jax_capture = self._jax_capture
        if jax_capture.is_tracing() or threading.current_thread() is not jax_capture.main_thread:
            return self._compiled(*args, **kwargs)
        jax_capture.steps.on_call(self._function_name)
        self._call_count += 1
        trace = (
            jax_capture.profiler.start()
            if jax_capture.can_profile() and self._tracing_schedule.is_trace_due()
            else None
        )
        if self._region_scope == 0:
            self._region_scope = capture.child_scope(0, capture.SCOPE_REGION, self._function_name)
        scope = (
            capture.child_scope(self._region_scope, capture.SCOPE_PHASE, "compile")
            if self._call_count == 1
            else self._region_scope
        )
        begin_s = time.perf_counter()
        scope_depth = capture.enter(scope)
        try:
            result = self._compiled(*args, **kwargs)
            if jax_capture.waits_for_result():
                jax_capture.jax.block_until_ready(result)
            return result
        finally:
            capture.leave_to(scope_depth)
            jax_capture.steps.on_return(self._function_name, time.perf_counter() - begin_s, self._call_count == 1)
            if trace is not None:
                jax_capture.profiler.stop(trace, self._function_name)


def _return_unwrapped(compiled):
    return compiled


def _make_tracing_check(jax):
    """Returns a function that is True while JAX traces a function: a call during tracing does not execute anything."""
    from jax._src import core

    is_trace_state_clean = core.trace_state_clean
    return lambda: not is_trace_state_clean()


def _watch_jit(jax, jax_capture: JaxCapture) -> None:
    original_jit = jax.jit

    @functools.wraps(original_jit)
    def jit(*args, **kwargs):
        compiled = original_jit(*args, **kwargs)
        # In newer versions, jit(static_argnums=...) without a function returns a decorator.
        if not args and "fun" not in kwargs:
            return lambda function: TracedJit(compiled(function), jax_capture)
        return TracedJit(compiled, jax_capture)

    jax.jit = jit


def _watch_steps(jax, jax_capture: JaxCapture) -> None:
    original_annotation, record_step = (
        jax.profiler.StepTraceAnnotation,
        capture.suppress_failures(jax_capture.steps.record_step),
    )

    class StepTraceAnnotation(original_annotation):
        def __enter__(self):
            record_step()
            return super().__enter__()

    StepTraceAnnotation.__doc__ = original_annotation.__doc__
    StepTraceAnnotation.__qualname__ = original_annotation.__qualname__
    StepTraceAnnotation.__module__ = original_annotation.__module__
    jax.profiler.StepTraceAnnotation = StepTraceAnnotation


@capture.suppress_failures
def install(jax) -> None:
    if not capture.is_recording() or os.environ.get("JOULEMAP_TRACE") in ("off", "kernels"):
        return
    jax_capture = JaxCapture(jax)
    _watch_jit(jax, jax_capture)
    _watch_steps(jax, jax_capture)
    watch_compiler()
    capture.fact("jax", jax.__version__)
