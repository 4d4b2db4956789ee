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
        self._names = GraphNames()
        self._scope = capture.child_scope(0, capture.SCOPE_MODE, self._mode)
        self._compile_scope = capture.child_scope(self._scope, capture.SCOPE_PHASE, "compile")

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
        call = CapturedCall(self._names, self._compile_scope)
        set_current_call(call)
        depth = capture.enter(self._scope)
        begin_s = time.perf_counter()
        has_returned = False
        try:
            result = self._function(*args, **kwargs)
            has_returned = True
            return result
        finally:
            capture.leave_to(depth)
            set_current_call(None)
            self._end_call(call, time.perf_counter() - begin_s, trace)
            if has_returned and self._is_train:
                self._record_loss(result, trace is not None)

    @capture.suppress_failures
    def _end_call(self, call: CapturedCall, spent_s: float, trace) -> None:
        if call.was_compiled:
            read_graphs(call.graphs, self._names)
        if trace is not None:
            self._profiler.stop(trace, [("mode", self._mode)], self._names)
        self._profiler.times.add_call(f"{self._step_kind}_function of Keras", spent_s, trace is not None)

    @capture.suppress_failures
    def _record_loss(self, logs, may_wait: bool) -> None:
        """Records the loss. A loss on a GPU is read only after a profiled step, which has synchronized anyway."""
        loss = logs.get("loss") if isinstance(logs, dict) else None
        if loss is not None and (may_wait or "CPU" in getattr(loss, "device", "CPU")):
            capture.metric("loss", float(loss))


def _watch_function(trainer_class, kind: str, profiler: TensorFlowProfiler) -> None:
    make, attribute = f"make_{kind}_function", f"{kind}_function"
    original = getattr(trainer_class, make)

    @functools.wraps(original)
    def wrapper(self, force=False):
        given = original(self, force)
        function = getattr(self, attribute, None)
        if function is not None and not isinstance(function, TracedKerasFunction):
            setattr(self, attribute, TracedKerasFunction(function, kind, profiler))
        return getattr(self, attribute) if given is not None else None

    setattr(trainer_class, make, wrapper)


def _watch_epochs(callback_list_class) -> None:
    original, record_epoch = callback_list_class.on_epoch_begin, capture.suppress_failures(capture.epoch)

    @functools.wraps(original)
    def on_epoch_begin(self, epoch, logs=None):
        record_epoch(epoch)
        return original(self, epoch, logs)

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
    for kind in _MODE_BY_STEP_KIND:
        _watch_function(TensorFlowTrainer, kind, profiler)
    _watch_epochs(CallbackList)
    watch_eager_keras(keras)
