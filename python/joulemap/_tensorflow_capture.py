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
from typing import Optional

from . import _capture_interface as capture
from ._framework_trace import TracingSchedule, Trace
from ._keras_names import GraphNames, GraphNameRecorder

_MODES = {"train": "train", "test": "inference", "predict": "inference"}


class Profiler:
    """TensorFlow's own profiler, for one call at a time, on machines without a GPU. On a GPU, host launch times do not
    show kernel durations, and two profilers cannot share the GPU's records."""

    def __init__(self, tf) -> None:
        self._experimental = tf.profiler.experimental
        self._list_devices = tf.config.list_physical_devices
        self._has_gpu: Optional[bool] = None
        self._has_recorded_cost = False

    def _is_useful(self) -> bool:
        if self._has_gpu is None:
            self._has_gpu = bool(self._list_devices("GPU"))
            if self._has_gpu:
                capture.diagnose("layers_not_told", "TensorFlow graphs on a GPU have no energy by layer")
        return not self._has_gpu

    @capture.guarded
    def start(self) -> Optional[Trace]:
        if not self._is_useful():
            return None
        trace = Trace()
        options = self._experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=0)
        try:
            self._experimental.start(trace.folder, options)
        except Exception as error:  # noqa: BLE001 - usually another profiler is active
            message = f"TensorFlow's profiler did not start, so layers have no energy: {error}"
            capture.diagnose("profiler_taken", message, "stop other profilers of the program")
            return None
        return trace

    @capture.guarded
    def stop(self, trace: Trace, mode: str, names: GraphNames) -> None:
        begin_s = time.perf_counter()
        self._experimental.stop()
        trace.store("xplane.pb", [("mode", mode)], names)
        if not self._has_recorded_cost:
            self._has_recorded_cost = True
            cost_ms = (time.perf_counter() - begin_s) * 1e3
            capture.fact("tensorflow_profiler", f"a profiled step took {cost_ms:.1f} ms more, outside of its scope")


class TracedFunction:
    """Wraps the function that Keras makes of a train_step, test_step or predict_step, and captures each call."""

    def __init__(self, function, kind: str, watch: GraphNameRecorder, profiler: Profiler) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._is_train = kind == "train"
        self._mode = _MODES[kind]
        self._watch = watch
        self._profiler = profiler
        self._plan = TracingSchedule()
        self._names = GraphNames()
        self._scope = capture.child_scope(0, capture.MODE, self._mode)
        self._compile_scope = capture.child_scope(self._scope, capture.PHASE, "compile")
        self._was_called = False

    def __getattr__(self, name: str):
        if name == "_function":  # while this object is copied, the attribute does not exist yet
            raise AttributeError(name)
        return getattr(self._function, name)

    def __call__(self, *args, **kwargs):
        if self._is_train:
            capture.step()
        else:
            capture.on_event(capture.FORWARD_INFER)
        trace = self._profiler.start() if self._plan.is_due() else None
        outer, self._watch.names = self._watch.names, self._names
        depth = capture.enter(self._scope if self._was_called else self._compile_scope)
        returned = False
        try:
            result = self._function(*args, **kwargs)
            returned = True
            return result
        finally:
            capture.leave_to(depth)
            self._watch.names = outer
            self._was_called = True
            if trace is not None:
                self._profiler.stop(trace, self._mode, self._names)
            if returned and self._is_train:
                self._record_loss(result, trace is not None)

    @capture.guarded
    def _record_loss(self, logs, may_wait: bool) -> None:
        """Records the loss. A loss on a GPU is read only after a profiled step, which has synchronized anyway."""
        loss = logs.get("loss") if isinstance(logs, dict) else None
        if loss is not None and (may_wait or "CPU" in getattr(loss, "device", "CPU")):
            capture.metric("loss", float(loss))


def _watch_function(trainer_class, kind: str, watch: GraphNameRecorder, profiler: Profiler) -> None:
    make, attribute = f"make_{kind}_function", f"{kind}_function"
    original = getattr(trainer_class, make)

    @functools.wraps(original)
    def wrapper(self, force=False):
        given = original(self, force)
        function = getattr(self, attribute, None)
        if function is not None and not isinstance(function, TracedFunction):
            setattr(self, attribute, TracedFunction(function, kind, watch, profiler))
        return getattr(self, attribute) if given is not None else None

    setattr(trainer_class, make, wrapper)


def _watch_epochs(callback_list_class) -> None:
    original, record_epoch = callback_list_class.on_epoch_begin, capture.guarded(capture.epoch)

    @functools.wraps(original)
    def on_epoch_begin(self, epoch, logs=None):
        record_epoch(epoch)
        return original(self, epoch, logs)

    callback_list_class.on_epoch_begin = on_epoch_begin


@capture.guarded
def install(keras) -> None:
    if not capture.is_recording() or keras.backend.backend() != "tensorflow":
        return
    import tensorflow as tf
    from keras.src.backend.tensorflow.trainer import TensorFlowTrainer
    from keras.src.callbacks.callback_list import CallbackList

    watch, profiler = GraphNameRecorder(keras, tf), Profiler(tf)
    watch.install()
    for kind in _MODES:
        _watch_function(TensorFlowTrainer, kind, watch, profiler)
    _watch_epochs(CallbackList)
    capture.fact("tensorflow", tf.__version__)
    capture.fact("keras", keras.__version__)
