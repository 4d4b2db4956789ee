# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled TensorFlow functions that are being captured, and TensorFlow's profiler for a few of them.

A compiled graph runs in one call, in which no hook sees a layer. Each outermost call of a thread is therefore a coarse
scope with exact time; `current_call()` is the call of this thread. TensorFlow traces Python functions to graphs during
such a call: watch_func_graphs() collects them and counts the rest of the call as compilation.
"""

from __future__ import annotations

import atexit
import functools
import threading
import time
from typing import Dict, List, Optional, Sequence, Tuple

from . import _capture_interface as capture
from ._framework_trace import FrameworkTrace
from ._graph_names import GraphNames

# Profiled calls may cost this much in all: a part of the run time, and a constant for short runs.
_MAX_PROFILING_SHARE = 0.02
_FREE_PROFILING_S = 2.0


class CapturedCall:
    """An outermost call of a compiled function. `names`: the names of the function's graphs."""

    def __init__(self, names: GraphNames, compile_scope: int) -> None:
        self.names = names
        self.graphs: List = []
        self._compile_scope = compile_scope

    def add_graph(self, graph) -> None:
        if not self.graphs:
            capture.enter(self._compile_scope)  # until the call ends: TensorFlow optimizes a new graph when it runs
        self.graphs.append(graph)

    @property
    def was_compiled(self) -> bool:
        return bool(self.graphs)


class _ThreadState(threading.local):
    call: Optional[CapturedCall] = None


_thread_state = _ThreadState()


def current_call() -> Optional[CapturedCall]:
    return _thread_state.call


def set_current_call(call: Optional[CapturedCall]) -> Optional[CapturedCall]:
    """Returns the previous call."""
    previous_call, _thread_state.call = _thread_state.call, call
    return previous_call


def current_graph_names() -> Optional[GraphNames]:
    call = _thread_state.call
    return call.names if call is not None else None


def watch_func_graphs() -> None:
    from tensorflow.python.framework.func_graph import FuncGraph

    original_init, add_graph = FuncGraph.__init__, capture.suppress_failures(CapturedCall.add_graph)

    @functools.wraps(original_init)
    def __init__(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        call = _thread_state.call
        if call is not None:
            add_graph(call, self)

    FuncGraph.__init__ = __init__


class FunctionTimes:
    """Time and profiled calls of each function, to report functions without layers at the end of the program."""

    def __init__(self) -> None:
        self._times_by_function: Dict[str, List[float]] = {}  # calls, profiled calls, seconds

    def add_call(self, function: str, elapsed_s: float, was_profiled: bool) -> None:
        function_totals = self._times_by_function.setdefault(function, [0, 0, 0.0])
        function_totals[0] += 1
        function_totals[1] += was_profiled
        function_totals[2] += elapsed_s

    def functions_without_layers(self) -> List[Tuple[str, int]]:
        """Functions that took 1 % of the time or more and were never profiled, with the number of their calls."""
        total_s = sum(elapsed_s for _, _, elapsed_s in self._times_by_function.values())
        unprofiled_functions = [
            (elapsed_s, name, int(call_count))
            for name, (call_count, profiled_count, elapsed_s) in self._times_by_function.items()
            if profiled_count == 0 and elapsed_s >= 0.01 * total_s
        ]
        return [(name, call_count) for _, name, call_count in sorted(unprofiled_functions, reverse=True)]


class TensorFlowProfiler:
    """TensorFlow's own profiler, for one call at a time, on machines without a GPU. On a GPU, host launch times do not
    show kernel durations, and two profilers cannot share the GPU's records."""

    def __init__(self, tf) -> None:
        self._tf_profiler = tf.profiler.experimental
        self._list_devices = tf.config.list_physical_devices
        self._profiler_lock = threading.Lock()
        self._has_gpu: Optional[bool] = None
        self._is_used_by_program = False
        self._creation_s = time.monotonic()
        self._trace_count = 0
        self._profiling_cost_s = 0.0
        self.times = FunctionTimes()
        atexit.register(self._report_functions_without_layers)

    def has_gpu(self) -> bool:
        if self._has_gpu is None:
            self._has_gpu = bool(self._list_devices("GPU"))
            if self._has_gpu:
                capture.diagnose(
                    "layers_not_told",
                    "TensorFlow graphs on a GPU have no energy by layer",
                    "profile some steps with tf.profiler and import the trace: joulemap import xplane LOGDIR",
                )
        return self._has_gpu

    def can_start(self) -> bool:
        """Whether another profiled call is within the limit of the cost."""
        return self._profiling_cost_s <= _FREE_PROFILING_S + _MAX_PROFILING_SHARE * (
            time.monotonic() - self._creation_s
        )

    @capture.suppress_failures
    def start(self) -> Optional[FrameworkTrace]:
        """None on a GPU, and while another thread or the program itself profiles."""
        if self.has_gpu() or not self._profiler_lock.acquire(blocking=False):
            return None
        begin_s = time.perf_counter()
        trace = FrameworkTrace()
        options = self._tf_profiler.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=0)
        try:
            self._tf_profiler.start(trace.folder, options)
        except Exception as error:  # noqa: BLE001 - usually another profiler is active
            self._profiler_lock.release()
            self._is_used_by_program = True
            message = f"TensorFlow's profiler did not start, so layers have no energy: {error}"
            capture.diagnose("profiler_taken", message, "stop other profilers of the program")
            return None
        self._profiling_cost_s += time.perf_counter() - begin_s
        return trace

    @capture.suppress_failures
    def stop(self, trace: FrameworkTrace, coarse_scopes: Sequence[Tuple[str, str]], names: GraphNames) -> None:
        begin_s = time.perf_counter()
        try:
            self._tf_profiler.stop()
        finally:
            self._profiler_lock.release()
        trace.store_trace("xplane.pb", coarse_scopes, names.metadata_lines())
        self._profiling_cost_s += time.perf_counter() - begin_s
        self._trace_count += 1

    @capture.suppress_failures
    def _report_functions_without_layers(self) -> None:
        if self._trace_count > 0:
            capture.fact(
                "tensorflow_profiler",
                f"{self._trace_count} profiled calls took {self._profiling_cost_s * 1e3:.0f} ms more, outside of their "
                "scopes",
            )
        if self._has_gpu or self._is_used_by_program:
            return
        for function, call_count in self.times.functions_without_layers()[:5]:
            limit_reason = "profiling had reached its limit of the run time"
            reason = "its only call also compiled it" if call_count == 1 else limit_reason
            capture.diagnose("function_without_layers", f"{function}: no call was profiled, because {reason}", "")
