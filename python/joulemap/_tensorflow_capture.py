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
        self._steps = steps
        self._tracing_schedule = TracingSchedule()
        self._mode = ""  # unknown until the function has been traced
        self._set_scopes()

    def _set_scopes(self) -> None:
        mode = capture.child_scope(0, capture.SCOPE_MODE, self._mode) if self._mode else 0
        self._scope = capture.child_scope(mode, capture.SCOPE_REGION, self.name)
        self._compile_scope = capture.child_scope(self._scope, capture.SCOPE_PHASE, "compile")

    def call_captured(self, function: Callable, args, kwargs, compiles: bool = False):
        """Calls the function. `compiles`: this call is known to compile a graph that was built before."""
        if is_recording_tape():
            self.names.has_gradients = True
        else:
            self._steps.on_call(self.name)
        is_trace_due = self._profiler.can_start() and self._tracing_schedule.is_trace_due()
        trace = self._profiler.start() if is_trace_due else None
        call = CapturedCall(self.names, self._compile_scope)
        set_current_call(call)
        depth = capture.enter(self._compile_scope if compiles else self._scope)
        begin_s = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            capture.leave_to(depth)
            set_current_call(None)
            self._end_call(call, compiles, time.perf_counter() - begin_s, trace)

    @capture.suppress_failures
    def _end_call(self, call: CapturedCall, compiles: bool, spent_s: float, trace) -> None:
        if call.was_compiled:
            read_graphs(call.graphs, self.names, unscoped_phase="forward")
        if trace is not None:
            self._profiler.stop(trace, [("mode", self._mode or "inference"), ("region", self.name)], self.names)
        mode = "train" if self.names.has_gradients else "inference"
        if mode != self._mode:
            self._mode = mode
            self._set_scopes()
        was_compiled = compiles or call.was_compiled
        self._steps.on_return(self.name, spent_s, was_compiled, self.names.has_gradients)
        self._profiler.times.add_call(self.name, spent_s, trace is not None)


class FunctionCapture:
    """Captures outermost calls of tf.function and of concrete functions."""

    def __init__(self, tf, profiler: TensorFlowProfiler, steps: StepDetector) -> None:
        self._executing_eagerly = tf.executing_eagerly
        self._profiler = profiler
        self._steps = steps
        self._captured_functions: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    @capture.suppress_failures
    def _find_or_create_capture(self, function) -> CapturedFunction:
        known = self._captured_functions.get(function)
        if known is None:
            name = str(getattr(function, "name", None) or "function")
            concrete_name_match = _CONCRETE_NAME_PATTERN.match(name)
            known = CapturedFunction(
                concrete_name_match[1] if concrete_name_match else name, self._profiler, self._steps
            )
            self._captured_functions[function] = known
        return known

    def wrap_calls(self, kind) -> None:
        original = kind.__call__
        capture_function = self

        @functools.wraps(original)
        def __call__(self, *args, **kwargs):
            # While another function is traced, a call adds to its graph and executes nothing.
            if current_call() is not None or not capture_function._executing_eagerly():
                return original(self, *args, **kwargs)
            captured = capture_function._find_or_create_capture(self)
            if captured is None:
                return original(self, *args, **kwargs)
            return captured.call_captured(original, (self, *args), kwargs)

        kind.__call__ = __call__


class SessionCapture:
    """Captures runs of sessions of tf.compat.v1."""

    def __init__(self, nest, profiler: TensorFlowProfiler, steps: StepDetector) -> None:
        self._flatten = nest.flatten
        self._profiler = profiler
        self._steps = steps
        self._fetches_by_session: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    @staticmethod
    def _fetch_name(fetch) -> str:
        name = getattr(fetch, "name", None)
        return (name if isinstance(name, str) else str(fetch)).partition(":")[0]

    @capture.suppress_failures
    def _find_or_create_fetches_capture(self, session, fetches) -> Optional["CapturedFetches"]:
        try:
            names = tuple(sorted({self._fetch_name(fetch) for fetch in self._flatten(fetches) if fetch is not None}))
        except (TypeError, ValueError):  # a structure that cannot be sorted
            names = ()
        known = self._fetches_by_session.setdefault(session, {})
        if names not in known and len(known) >= _MAX_FETCH_SETS:
            names = ()
        if names not in known:
            known[names] = CapturedFetches(names, self._profiler, self._steps)
        return known[names]

    def wrap_session_runs(self, kind) -> None:
        run, make_callable = kind.run, kind.make_callable
        session_capture = self

        @functools.wraps(run)
        def traced_run(self, fetches, *args, **kwargs):
            captured = (
                session_capture._find_or_create_fetches_capture(self, fetches) if current_call() is None else None
            )
            if captured is None:
                return run(self, fetches, *args, **kwargs)
            return captured.run(self.graph, run, (self, fetches, *args), kwargs)

        @functools.wraps(make_callable)
        def traced_make_callable(self, fetches, *args, **kwargs):
            made = make_callable(self, fetches, *args, **kwargs)
            captured = (
                session_capture._find_or_create_fetches_capture(self, fetches) if current_call() is None else None
            )
            if captured is None:
                return made
            return functools.wraps(made)(lambda *given, **named: captured.run(self.graph, made, given, named))

        kind.run, kind.make_callable = traced_run, traced_make_callable


class CapturedFetches:
    """Runs of one set of fetches. Names are read from the session's graph again after the graph has grown."""

    def __init__(self, fetches, profiler: TensorFlowProfiler, steps: StepDetector) -> None:
        shown = list(fetches[:_MAX_FETCHES_IN_NAME])
        if len(fetches) > len(shown) or not fetches:
            shown.append("...")
        self._fetches = fetches
        self._function = CapturedFunction(f"Session.run({', '.join(shown)})", profiler, steps)
        self._graph_version: Optional[int] = None

    def run(self, graph, function: Callable, args, kwargs):
        is_new = self._graph_version is None
        if graph.version != self._graph_version:
            self._read_graph(graph)
        return self._function.call_captured(function, args, kwargs, compiles=is_new)

    @capture.suppress_failures
    def _read_graph(self, graph) -> None:
        self._graph_version = graph.version
        names = self._function.names
        read_graphs([graph], names, unscoped_phase="forward")
        names.has_gradients = computes_gradients(self._find_operations(graph))

    def _find_operations(self, graph) -> List:
        found = []
        for name in self._fetches:
            try:
                found.append(graph.get_operation_by_name(name))
            except (KeyError, ValueError):  # a composite fetch, such as a sparse tensor, has no operation of its name
                continue
        return found


def _watch_steps(steps: StepDetector) -> None:
    """tf.profiler.experimental.Trace("train", step_num=...) begins a step."""
    from tensorflow.python.profiler.trace import Trace

    original, record_step = Trace.__init__, capture.suppress_failures(steps.record_step)

    @functools.wraps(original)
    def __init__(self, name, **kwargs):
        if "step_num" in kwargs:
            record_step()
        original(self, name, **kwargs)

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
    functions = FunctionCapture(tf, profiler, steps)
    for kind in (Function, ConcreteFunction):
        functions.wrap_calls(kind)
    SessionCapture(tf.nest, profiler, steps).wrap_session_runs(BaseSession)
    _watch_steps(steps)
    watch_eager_execution(tf)
    capture.fact("tensorflow", tf.__version__)
