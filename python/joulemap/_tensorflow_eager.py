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

    def phase_scope(self, name: str, is_training: bool = True) -> int:
        return capture.child_scope(
            self._train_scope if is_training else self._inference_scope, capture.SCOPE_PHASE, name
        )

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
        is_training = is_recording_tape()
        if not _thread_state.layers and not is_training:
            capture.on_event(capture.EVENT_FORWARD_INFER)
        _thread_state.layers.append(name)
        module_path = _thread_state.layers[1:] or _thread_state.layers
        return capture.enter(
            capture.child_scope(self.phase_scope("forward", is_training), capture.SCOPE_MODULE, ".".join(module_path))
        )

    def end_layer(self, depth: int) -> None:
        if _thread_state.layers:
            _thread_state.layers.pop()
        capture.leave_to(depth)

    def wrap_eager_calls(
        self, owner, name: str, begin_hook: Callable, end_hook: Callable, is_captured: Callable = lambda *args: True
    ) -> None:
        """Wraps owner.name: begin_hook(*args) before an eager call and end_hook(what begin_hook returned) after it."""
        original_method, begin_hook, end_hook = (
            getattr(owner, name),
            capture.suppress_failures(begin_hook),
            capture.suppress_failures(end_hook),
        )

        @functools.wraps(original_method)
        def wrapper(*args, **kwargs):
            if not self.is_eager() or not is_captured(*args):
                return original_method(*args, **kwargs)
            depth = begin_hook(*args)
            try:
                return original_method(*args, **kwargs)
            finally:
                if depth is not None:
                    end_hook(depth)

        setattr(owner, name, wrapper)


_eager_capture: Optional[EagerCapture] = None
_imported_keras = None  # the keras module, if it has been imported before tensorflow was complete


def watch_eager_execution(tf) -> None:
    global _eager_capture
    _eager_capture = eager_capture = EagerCapture(tf)
    tape_type = tf.GradientTape
    original_enter, original_exit = tape_type.__enter__, tape_type.__exit__
    begin_tape, end_tape = (
        capture.suppress_failures(eager_capture.begin_tape),
        capture.suppress_failures(eager_capture.end_tape),
    )

    @functools.wraps(original_enter)
    def __enter__(self):
        result = original_enter(self)
        if eager_capture.is_eager():
            self._joulemap_depth = (begin_tape(),)
        return result

    @functools.wraps(original_exit)
    def __exit__(self, *args):
        depth = self.__dict__.pop("_joulemap_depth", None)
        if depth is not None:
            end_tape(*depth)
        return original_exit(self, *args)

    tape_type.__enter__, tape_type.__exit__ = __enter__, __exit__
    for name in ("gradient", "jacobian", "batch_jacobian"):
        eager_capture.wrap_eager_calls(tape_type, name, lambda *args: eager_capture.begin_gradient(), capture.leave_to)
    optimizer = tf.compat.v1.train.Optimizer
    eager_capture.wrap_eager_calls(
        optimizer, "apply_gradients", lambda *args: eager_capture.begin_update(), eager_capture.end_update
    )
    if _imported_keras is not None:
        watch_eager_keras(_imported_keras)


def watch_eager_keras(keras) -> None:
    """Called after keras has been imported, which may be before or after tensorflow: each imports the other."""
    global _imported_keras
    eager_capture, _imported_keras = _eager_capture, keras
    if eager_capture is None:
        return  # watch_eager_execution() calls this function again
    from keras.src.optimizers.base_optimizer import BaseOptimizer

    symbolic_tensor_type = keras.KerasTensor
    eager_capture.wrap_eager_calls(
        BaseOptimizer, "apply", lambda *args: eager_capture.begin_update(), eager_capture.end_update
    )
    eager_capture.wrap_eager_calls(
        keras.layers.Layer,
        "__call__",
        lambda layer, *args: eager_capture.begin_layer(layer.name),
        eager_capture.end_layer,
        # A call with a symbolic tensor builds a model.
        lambda layer, *args: not (args and isinstance(args[0], symbolic_tensor_type)),
    )
