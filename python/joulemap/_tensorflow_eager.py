# SPDX-License-Identifier: Apache-2.0
"""Captures TensorFlow programs that train eagerly, operation by operation: what runs in a GradientTape is the phase
forward, its gradient() the phase backward, the optimizer's update the phase optimizer. Keras layers are modules of the
forward pass. No hook sees the layers of an eager backward pass; a diagnostic reports that.

Outside of eager execution the hooks do nothing: TensorFlow then builds a graph.
"""

from __future__ import annotations

import functools
import threading
from typing import Callable, List, Optional

from . import _capture_interface as capture


class _ThreadState(threading.local):
    open_tape_count = 0  # open tapes

    def __init__(self) -> None:
        self.layers: List[str] = []  # Keras layers being called, outermost first


_thread_state = _ThreadState()


def is_recording_tape() -> bool:
    """Whether this thread is in a GradientTape outside of any graph."""
    return _thread_state.open_tape_count > 0


class EagerCapture:
    def __init__(self, tf) -> None:
        self.is_eager = tf.executing_eagerly
        self._train_scope = capture.child_scope(0, capture.SCOPE_MODE, "train")
        self._inference_scope = capture.child_scope(0, capture.SCOPE_MODE, "inference")
        self._has_optimizer = False  # the program updates variables through an optimizer
        self._has_gradients = False  # gradients were computed since the last step began
        self._has_reported = False

    def phase_scope(self, name: str, trains: bool = True) -> int:
        return capture.child_scope(self._train_scope if trains else self._inference_scope, capture.SCOPE_PHASE, name)

    def begin_tape(self) -> Optional[int]:
        _thread_state.open_tape_count += 1
        if _thread_state.open_tape_count > 1:
            return None
        if self._has_gradients and not self._has_optimizer:
            capture.on_event(capture.EVENT_OPTIMIZER_DONE)  # the program itself updated its variables
        self._has_gradients = False
        capture.on_event(capture.EVENT_FORWARD_TRAIN)
        return capture.enter(self.phase_scope("forward"))

    def end_tape(self, depth: Optional[int]) -> None:
        _thread_state.open_tape_count = max(_thread_state.open_tape_count - 1, 0)
        if depth is not None:
            capture.leave_to(depth)

    def begin_gradient(self) -> int:
        self._has_gradients = True
        if not self._has_reported:
            self._has_reported = True
            capture.diagnose(
                "eager_backward",
                "TensorFlow ran the backward pass eagerly: its energy has a phase, but no layers",
                "decorate the training step with @tf.function",
            )
        capture.on_event(capture.EVENT_BACKWARD)
        return capture.enter(self.phase_scope("backward"))

    def begin_update(self) -> int:
        self._has_optimizer = True
        return capture.enter(self.phase_scope("optimizer"))

    def end_update(self, depth: int) -> None:
        capture.leave_to(depth)
        capture.on_event(capture.EVENT_OPTIMIZER_DONE)

    def begin_layer(self, name: str) -> int:
        trains = is_recording_tape()
        if not _thread_state.layers and not trains:
            capture.on_event(capture.EVENT_FORWARD_INFER)
        _thread_state.layers.append(name)
        path = _thread_state.layers[1:] or _thread_state.layers
        return capture.enter(
            capture.child_scope(self.phase_scope("forward", trains), capture.SCOPE_MODULE, ".".join(path))
        )

    def end_layer(self, depth: int) -> None:
        if _thread_state.layers:
            _thread_state.layers.pop()
        capture.leave_to(depth)

    def wrap_eager_calls(
        self, owner, name: str, begin: Callable, end: Callable, is_captured: Callable = lambda *args: True
    ) -> None:
        """Wraps owner.name: begin(*args) before an eager call and end(what begin returned) after it."""
        original, begin, end = getattr(owner, name), capture.suppress_failures(begin), capture.suppress_failures(end)

        @functools.wraps(original)
        def wrapper(*args, **kwargs):
            if not self.is_eager() or not is_captured(*args):
                return original(*args, **kwargs)
            depth = begin(*args)
            try:
                return original(*args, **kwargs)
            finally:
                if depth is not None:
                    end(depth)

        setattr(owner, name, wrapper)


_eager_capture: Optional[EagerCapture] = None
_imported_keras = None  # the keras module, if it has been imported before tensorflow was complete


def watch_eager_execution(tf) -> None:
    global _eager_capture
    _eager_capture = eager = EagerCapture(tf)
    tape = tf.GradientTape
    enter, leave = tape.__enter__, tape.__exit__
    begin, end = capture.suppress_failures(eager.begin_tape), capture.suppress_failures(eager.end_tape)

    @functools.wraps(enter)
    def __enter__(self):
        result = enter(self)
        if eager.is_eager():
            self._joulemap_depth = (begin(),)
        return result

    @functools.wraps(leave)
    def __exit__(self, *args):
        depth = self.__dict__.pop("_joulemap_depth", None)
        if depth is not None:
            end(*depth)
        return leave(self, *args)

    tape.__enter__, tape.__exit__ = __enter__, __exit__
    for name in ("gradient", "jacobian", "batch_jacobian"):
        eager.wrap_eager_calls(tape, name, lambda *args: eager.begin_gradient(), capture.leave_to)
    optimizer = tf.compat.v1.train.Optimizer
    eager.wrap_eager_calls(optimizer, "apply_gradients", lambda *args: eager.begin_update(), eager.end_update)
    if _imported_keras is not None:
        watch_eager_keras(_imported_keras)


def watch_eager_keras(keras) -> None:
    """Called after keras has been imported, which may be before or after tensorflow: each imports the other."""
    global _imported_keras
    eager, _imported_keras = _eager_capture, keras
    if eager is None:
        return  # watch_eager_execution() calls this function again
    from keras.src.optimizers.base_optimizer import BaseOptimizer

    symbolic = keras.KerasTensor
    eager.wrap_eager_calls(BaseOptimizer, "apply", lambda *args: eager.begin_update(), eager.end_update)
    eager.wrap_eager_calls(
        keras.layers.Layer,
        "__call__",
        lambda layer, *args: eager.begin_layer(layer.name),
        eager.end_layer,
        # A call with a symbolic tensor builds a model.
        lambda layer, *args: not (args and isinstance(args[0], symbolic)),
    )
