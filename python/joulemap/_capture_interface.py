# SPDX-License-Identifier: Apache-2.0
"""ctypes bindings of libjoulemap_capture.so (include/joulemap/capture.h), for frameworks that call it a few times per
step."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Callable

SCOPE_MODE, SCOPE_PHASE, SCOPE_MODULE, SCOPE_OP, SCOPE_FUNCTION, SCOPE_REGION, SCOPE_TENSORS = range(7)
(
    EVENT_LOADER_NEW,
    EVENT_LOADER_NEXT,
    EVENT_FORWARD_TRAIN,
    EVENT_FORWARD_INFER,
    EVENT_FORWARD_DONE,
    EVENT_BACKWARD,
    EVENT_OPTIMIZER_DONE,
) = range(7)

_library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "libjoulemap_capture.so"))
_library.jmc_child_scope.argtypes = [ctypes.c_uint32, ctypes.c_int, ctypes.c_char_p]
_library.jmc_child_scope.restype = ctypes.c_uint32
_library.jmc_current_scope.restype = ctypes.c_uint32
_library.jmc_enter.argtypes = [ctypes.c_uint32]
_library.jmc_enter.restype = ctypes.c_size_t
_library.jmc_leave_to.argtypes = [ctypes.c_size_t]
_library.jmc_leave_to.restype = None
_library.jmc_step.argtypes = [ctypes.POINTER(ctypes.c_int64)]
_library.jmc_step.restype = None
_library.jmc_epoch.argtypes = [ctypes.POINTER(ctypes.c_int64)]
_library.jmc_epoch.restype = None
_library.jmc_metric.argtypes = [ctypes.c_char_p, ctypes.c_double, ctypes.c_int64]
_library.jmc_metric.restype = None
_library.jmc_probing.argtypes = [ctypes.c_int]
_library.jmc_probing.restype = None
_library.jmc_region_push.argtypes = [ctypes.c_char_p]
_library.jmc_region_push.restype = None
_library.jmc_backward_begin.argtypes = [ctypes.c_uint32]
_library.jmc_backward_begin.restype = None
_library.jmc_backward_end.restype = None
_library.jmc_diagnose.argtypes = [ctypes.c_char_p] * 3
_library.jmc_diagnose.restype = None
_library.jmc_finish.restype = None
_library.jmc_leave_recording.restype = None
_library.jmc_hlo_op.argtypes = [ctypes.c_char_p] * 3
_library.jmc_hlo_op.restype = None
_library.jmc_fact.argtypes = [ctypes.c_char_p] * 2
_library.jmc_fact.restype = None

finish = _library.jmc_finish
join_recording = _library.jmc_join_recording
leave_recording = _library.jmc_leave_recording
enter = _library.jmc_enter
leave_to = _library.jmc_leave_to
on_event = _library.jmc_on_event
probing = _library.jmc_probing
region_pop = _library.jmc_region_pop
backward_begin = _library.jmc_backward_begin
backward_end = _library.jmc_backward_end

_is_disabled = False


def _encode_text(text: object) -> bytes:
    return str(text).replace("\0", "").encode("utf-8", "replace")


def is_recording() -> bool:
    return bool(_library.jmc_is_recording())


def child_scope(parent: int, kind: int, name: str) -> int:
    return _library.jmc_child_scope(parent, kind, _encode_text(name))


def region_push(name: str) -> None:
    _library.jmc_region_push(_encode_text(name))


def step() -> None:
    _library.jmc_step(None)


def epoch(number: int) -> None:
    _library.jmc_epoch(ctypes.byref(ctypes.c_int64(number)))


def metric(name: str, value: float) -> None:
    _library.jmc_metric(_encode_text(name), value, 0)


def diagnose(code: str, message: object, remedy: str = "") -> None:
    _library.jmc_diagnose(_encode_text(code), _encode_text(message), _encode_text(remedy))


def hlo_op(module: str, instruction: str, op_name: str) -> None:
    _library.jmc_hlo_op(_encode_text(module), _encode_text(instruction), _encode_text(op_name))


def fact(name: str, value: object) -> None:
    _library.jmc_fact(_encode_text(name), _encode_text(value))


def suppress_failures(function: Callable) -> Callable:
    """Wraps `function` to return None instead of raising, so that failures never reach the program. The first failure
    is recorded as a diagnostic and disables the capture of frameworks."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        global _is_disabled
        if _is_disabled:
            return None
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001
            _is_disabled = True
            diagnose(
                "capture_failed", f"{function.__qualname__}: {type(error).__name__}: {error}", "please report this"
            )
            return None

    return call
