# SPDX-License-Identifier: Apache-2.0
"""Captures tf.function and Session.run in a recorded program: install() is called after tensorflow has been imported.

Each outermost call of a tf.function, and each run of a session, is one coarse scope: a region with the name of the
function or of the fetches, in the mode "train" if its graph computes gradients, else "inference". TensorFlow's own
profiler traces a few calls, and the names in these traces divide the time among phases, layers and operations
(_tensorflow_calls.py). The program's graphs and results stay unchanged, and nothing waits for a device. keras.fit has
its own capture (_keras_capture.py).
"""

from __future__ import annotations

import functools
import os
import re
import time
import weakref
from typing import Callable, List, Optional

from . import _capture_interface as capture
from ._compiled_steps import StepDetector
from ._framework_trace import TracingSchedule
from ._graph_names import GraphNames
from ._tensorflow_calls import CapturedCall, TensorFlowProfiler, current_call, set_current_call, watch_func_graphs
from ._tensorflow_eager import is_recording_tape, watch_eager_execution
from ._tensorflow_graphs import computes_gradients, read_graphs

_CONCRETE_NAME_PATTERN = re.compile(r"^__(?:inference|forward|backward)_(.+?)_\d+$")
_MAX_FETCHES_IN_NAME = 3
# Sets of fetches of a session that have their own scope. A program that extends its graph in every step has more.
_MAX_FETCH_SETS = 64

_profiler: Optional[TensorFlowProfiler] = None


def get_shared_profiler(tf) -> TensorFlowProfiler:
    global _profiler
    if _profiler is None:
        _profiler = TensorFlowProfiler(tf)
    return _profiler


class CapturedFunction:
    """A tf.function, a concrete function, or a set of fetches of a session."""

    def __init__(self, name: str, profiler: TensorFlowProfiler, steps: StepDetector) -> None:
        self.name = name
        self.names = GraphNames()
        self._profiler = profiler
        self._step_detector = steps
        self._tracing_schedule = TracingSchedule()
        self._mode_name = ""  # unknown until the function has been traced
        self._set_scopes()

    def _set_scopes(self) -> None:
        mode = capture.child_scope(0, capture.SCOPE_MODE, self._mode_name) if self._mode_name else 0
        self._region_scope = capture.child_scope(mode, capture.SCOPE_REGION, self.name)
        self._compile_scope = capture.child_scope(self._region_scope, capture.SCOPE_PHASE, "compile")

    def call_captured(self, function: Callable, args, kwargs, compiles: bool = False):
        """Calls the function. `compiles`: this call is known to compile a graph that was built before."""
        if is_recording_tape():
            self.names.has_gradients = True
        else:
            self._step_detector.on_call(self.name)
        is_trace_due = self._profiler.can_start() and self._tracing_schedule.is_trace_due()
        trace = self._profiler.start() if is_trace_due else None
        call = CapturedCall(self.names, self._compile_scope)
        set_current_call(call)
        depth = capture.enter(self._compile_scope if compiles else self._region_scope)
        begin_s = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            capture.leave_to(depth)
            set_current_call(None)
            self._end_call(call, compiles, time.perf_counter() - begin_s, trace)

    @capture.suppress_failures
    def _end_call(self, call: CapturedCall, compiles_graph: bool, elapsed_s: float, trace) -> None:
        if call.was_compiled:
            read_graphs(call.graphs, self.names, unscoped_phase="forward")
        if trace is not None:
            self._profiler.stop(trace, [("mode", self._mode_name or "inference"), ("region", self.name)], self.names)
        mode = "train" if self.names.has_gradients else "inference"
        if mode != self._mode_name:
            self._mode_name = mode
            self._set_scopes()
        was_compiled = compiles_graph or call.was_compiled
        self._step_detector.on_return(self.name, elapsed_s, was_compiled, self.names.has_gradients)
        self._profiler.times.add_call(self.name, elapsed_s, trace is not None)


class FunctionCapture:
    """Captures outermost calls of tf.function and of concrete functions."""

    def __init__(self, tf, profiler: TensorFlowProfiler, steps: StepDetector) -> None:
        self._executing_eagerly = tf.executing_eagerly
        self._profiler = profiler
        self._step_detector = steps
        self._captured_functions: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    @capture.suppress_failures
    def _find_or_create_capture(self, function) -> CapturedFunction:
        captured_function = self._captured_functions.get(function)
        if captured_function is None:
            name = str(getattr(function, "name", None) or "function")
            concrete_name_match = _CONCRETE_NAME_PATTERN.match(name)
            captured_function = CapturedFunction(
                concrete_name_match[1] if concrete_name_match else name, self._profiler, self._step_detector
            )
            self._captured_functions[function] = captured_function
        return captured_function

    def wrap_calls(self, function_type) -> None:
        original_call = function_type.__call__
        capture_function = self

        @functools.wraps(original_call)
        def __call__(self, *args, **kwargs):
            # While another function is traced, a call adds to its graph and executes nothing.
            if current_call() is not None or not capture_function._executing_eagerly():
                return original_call(self, *args, **kwargs)
            captured_function = capture_function._find_or_create_capture(self)
            if captured_function is None:
                return original_call(self, *args, **kwargs)
            return captured_function.call_captured(original_call, (self, *args), kwargs)

        function_type.__call__ = __call__


class SessionCapture:
    """Captures runs of sessions of tf.compat.v1."""

    def __init__(self, nest, profiler: TensorFlowProfiler, steps: StepDetector) -> None:
        self._flatten = nest.flatten
        self._profiler = profiler
        self._step_detector = steps
        self._fetches_by_session: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    @staticmethod
    def _fetch_name(fetch) -> str:
        name = getattr(fetch, "name", None)
        return (name if isinstance(name, str) else str(fetch)).partition(":")[0]

    @capture.suppress_failures
    def _find_or_create_fetches_capture(self, session, fetches) -> Optional["CapturedFetches"]:
        try:
            fetch_names = tuple(
                sorted({self._fetch_name(fetch) for fetch in self._flatten(fetches) if fetch is not None})
            )
        except (TypeError, ValueError):  # a structure that cannot be sorted
            fetch_names = ()
        captures_by_fetches = self._fetches_by_session.setdefault(session, {})
        if fetch_names not in captures_by_fetches and len(captures_by_fetches) >= _MAX_FETCH_SETS:
            fetch_names = ()
        if fetch_names not in captures_by_fetches:
            captures_by_fetches[fetch_names] = CapturedFetches(fetch_names, self._profiler, self._step_detector)
        return captures_by_fetches[fetch_names]

    def wrap_session_runs(self, session_type) -> None:
        original_run, original_make_callable = session_type.run, session_type.make_callable
        session_capture = self

        @functools.wraps(original_run)
        def traced_run(self, fetches, *args, **kwargs):
            captured_fetches = (
                session_capture._find_or_create_fetches_capture(self, fetches) if current_call() is None else None
            )
            if captured_fetches is None:
                return original_run(self, fetches, *args, **kwargs)
            return captured_fetches.run(self.graph, original_run, (self, fetches, *args), kwargs)

        @functools.wraps(original_make_callable)
        def traced_make_callable(self, fetches, *args, **kwargs):
            session_callable = original_make_callable(self, fetches, *args, **kwargs)
            captured_fetches = (
                session_capture._find_or_create_fetches_capture(self, fetches) if current_call() is None else None
            )
            if captured_fetches is None:
                return session_callable
            return functools.wraps(session_callable)(
                lambda *call_args, **call_kwargs: captured_fetches.run(
                    self.graph, session_callable, call_args, call_kwargs
                )
            )

        session_type.run, session_type.make_callable = traced_run, traced_make_callable


class CapturedFetches:
    """Runs of one set of fetches. Names are read from the session's graph again after the graph has grown."""

    def __init__(self, fetches, profiler: TensorFlowProfiler, steps: StepDetector) -> None:
        shown_fetches = list(fetches[:_MAX_FETCHES_IN_NAME])
        if len(fetches) > len(shown_fetches) or not fetches:
            shown_fetches.append("...")
        self._fetch_names = fetches
        self._captured_function = CapturedFunction(f"Session.run({', '.join(shown_fetches)})", profiler, steps)
        self._graph_version: Optional[int] = None

    def run(self, graph, function: Callable, args, kwargs):
        is_first_run = self._graph_version is None
        if graph.version != self._graph_version:
            self._read_graph(graph)
        return self._captured_function.call_captured(function, args, kwargs, compiles=is_first_run)

    @capture.suppress_failures
    def _read_graph(self, graph) -> None:
        self._graph_version = graph.version
        names = self._captured_function.names
        read_graphs([graph], names, unscoped_phase="forward")
        names.has_gradients = computes_gradients(self._find_operations(graph))

    def _find_operations(self, graph) -> List:
        graph_operations = []
        for fetch_name in self._fetch_names:
            try:
                graph_operations.append(graph.get_operation_by_name(fetch_name))
            except (KeyError, ValueError):  # a composite fetch, such as a sparse tensor, has no operation of its name
                continue
        return graph_operations


def _watch_steps(steps: StepDetector) -> None:
    """tf.profiler.experimental.Trace("train", step_num=...) begins a step."""
    from tensorflow.python.profiler.trace import Trace

    original_init, record_step = Trace.__init__, capture.suppress_failures(steps.record_step)

    @functools.wraps(original_init)
    def __init__(self, name, **kwargs):
        if "step_num" in kwargs:
            record_step()
        original_init(self, name, **kwargs)

    Trace.__init__ = __init__


def is_tracing_enabled() -> bool:
    return capture.is_recording() and os.environ.get("JOULEMAP_TRACE") not in ("off", "kernels")


@capture.suppress_failures
def install(tf) -> None:
    if not is_tracing_enabled():
        return
    try:
        from tensorflow.python.client.session import BaseSession
        from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction
        from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function
    except ImportError as error:
        message = f"TensorFlow {tf.__version__} cannot be captured: {error}"
        capture.diagnose("tensorflow_not_captured", message, "use TensorFlow 2.13 or later")
        return
    profiler, steps = get_shared_profiler(tf), StepDetector()
    watch_func_graphs()
    function_capture = FunctionCapture(tf, profiler, steps)
    for function_type in (Function, ConcreteFunction):
        function_capture.wrap_calls(function_type)
    SessionCapture(tf.nest, profiler, steps).wrap_session_runs(BaseSession)
    _watch_steps(steps)
    watch_eager_execution(tf)
    capture.fact("tensorflow", tf.__version__)
