# SPDX-License-Identifier: Apache-2.0
"""Captures Keras on TensorFlow in a recorded program: install() is called after keras has been imported.

fit, evaluate and predict run a compiled graph for each batch, in which no hook sees a layer. Each call is therefore one
coarse scope, "train" or "inference", whose time is exact. TensorFlow's own profiler traces a few calls, and the names
in these traces divide the time among layers. Training itself is unchanged: no Keras callback is added, and nothing
waits for a device.
"""

from __future__ import annotations

import functools
import time

from . import _capture_interface as capture
from ._framework_trace import TracingSchedule
from ._graph_names import GraphNames
from ._keras_names import GraphNameRecorder
from ._tensorflow_calls import CapturedCall, TensorFlowProfiler, current_call, set_current_call
from ._tensorflow_capture import is_tracing_enabled, get_shared_profiler
from ._tensorflow_eager import watch_eager_keras
from ._tensorflow_graphs import read_graphs

_MODE_BY_STEP_KIND = {"train": "train", "test": "inference", "predict": "inference"}


class TracedKerasFunction:
    """Wraps the function that Keras makes of a train_step, test_step or predict_step, and captures each call."""

    def __init__(self, function, kind: str, profiler: TensorFlowProfiler) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._step_kind = kind
        self._is_train = kind == "train"
        self._mode = _MODE_BY_STEP_KIND[kind]
        self._profiler = profiler
        self._tracing_schedule = TracingSchedule()
        self._graph_names = GraphNames()
        self._mode_scope = capture.child_scope(0, capture.SCOPE_MODE, self._mode)
        self._compile_scope = capture.child_scope(self._mode_scope, capture.SCOPE_PHASE, "compile")

    def __getattr__(self, name: str):
        if name == "_function":  # while this object is copied, the attribute does not exist yet
            raise AttributeError(name)
        return getattr(self._function, name)

    def __call__(self, *args, **kwargs):
        if current_call() is not None:
            return self._function(*args, **kwargs)
        if self._is_train:
            capture.step()
        else:
            capture.on_event(capture.EVENT_FORWARD_INFER)
        trace = self._profiler.start() if self._tracing_schedule.is_trace_due() else None
        captured_call = CapturedCall(self._graph_names, self._compile_scope)
        set_current_call(captured_call)
        scope_depth = capture.enter(self._mode_scope)
        begin_s = time.perf_counter()
        has_returned = False
        try:
            result = self._function(*args, **kwargs)
            has_returned = True
            return result
        finally:
            capture.leave_to(scope_depth)
            set_current_call(None)
            self._end_call(captured_call, time.perf_counter() - begin_s, trace)
            if has_returned and self._is_train:
                self._record_loss(result, trace is not None)

    @capture.suppress_failures
    def _end_call(self, captured_call: CapturedCall, spent_s: float, trace) -> None:
        if captured_call.was_compiled:
            read_graphs(captured_call.graphs, self._graph_names)
        if trace is not None:
            self._profiler.stop(trace, [("mode", self._mode)], self._graph_names)
        self._profiler.times.add_call(f"{self._step_kind}_function of Keras", spent_s, trace is not None)

    @capture.suppress_failures
    def _record_loss(self, logs, may_wait: bool) -> None:
        """Records the loss. A loss on a GPU is read only after a profiled step, which has synchronized anyway."""
        loss = logs.get("loss") if isinstance(logs, dict) else None
        if loss is not None and (may_wait or "CPU" in getattr(loss, "device", "CPU")):
            capture.metric("loss", float(loss))


def _watch_function(trainer_class, step_kind: str, profiler: TensorFlowProfiler) -> None:
    maker_name, function_attribute = f"make_{step_kind}_function", f"{step_kind}_function"
    original_maker = getattr(trainer_class, maker_name)

    @functools.wraps(original_maker)
    def wrapper(self, force=False):
        made_function = original_maker(self, force)
        function = getattr(self, function_attribute, None)
        if function is not None and not isinstance(function, TracedKerasFunction):
            setattr(self, function_attribute, TracedKerasFunction(function, step_kind, profiler))
        return getattr(self, function_attribute) if made_function is not None else None

    setattr(trainer_class, maker_name, wrapper)


def _watch_epochs(callback_list_class) -> None:
    original_on_epoch_begin, record_epoch = callback_list_class.on_epoch_begin, capture.suppress_failures(capture.epoch)

    @functools.wraps(original_on_epoch_begin)
    def on_epoch_begin(self, epoch, logs=None):
        record_epoch(epoch)
        return original_on_epoch_begin(self, epoch, logs)

    callback_list_class.on_epoch_begin = on_epoch_begin


@capture.suppress_failures
def install(keras) -> None:
    if not is_tracing_enabled() or keras.backend.backend() != "tensorflow":
        return
    capture.fact("keras", keras.__version__)
    if int(keras.__version__.partition(".")[0]) < 3:
        return  # Keras 2 trains with a tf.function, which _tensorflow_capture.py captures
    import tensorflow as tf
    from keras.src.backend.tensorflow.trainer import TensorFlowTrainer
    from keras.src.callbacks.callback_list import CallbackList

    profiler = get_shared_profiler(tf)
    GraphNameRecorder(keras, tf).install()
    for step_kind in _MODE_BY_STEP_KIND:
        _watch_function(TensorFlowTrainer, step_kind, profiler)
    _watch_epochs(CallbackList)
    watch_eager_keras(keras)
