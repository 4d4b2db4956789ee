# SPDX-License-Identifier: Apache-2.0
"""Keeps failures of the capture away from the program: the first one is recorded as a diagnostic and disables the
capture."""

from __future__ import annotations

import functools
from typing import Callable

from . import _capture


def record_failure(error: Exception) -> None:
    _capture.disable_capture()
    _capture.diagnose("capture_failed", f"{type(error).__name__}: {error}", "please report this")


def suppress_failures(function: Callable, runs_when_capture_off: bool = False) -> Callable:
    """Wraps `function` to return None if it would raise or if the capture is off."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if not (runs_when_capture_off or _capture.is_on()):
            return None
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - must not reach the program
            record_failure(error)
            return None

    return call


def wrap_function(owner: object, name: str, is_compiling: Callable[[], bool], begin: Callable, end: Callable) -> None:
    """Replaces owner.name by a function that calls begin(args) before it and end(token, has_returned, args) after it.

    `begin` and `end` belong to the capture: their failures disable it and do not reach the program. Results and
    exceptions of the wrapped function pass unchanged. While torch.compile traces the function, the wrapper calls only
    the original.
    """
    original_function = getattr(owner, name)
    is_capture_on = _capture.is_on

    # The wrapper runs in every step of the program, so it makes as few calls as possible.
    @functools.wraps(original_function)
    def wrapper(*args, **kwargs):
        if is_compiling() or not is_capture_on():  # is_compiling() first: torch.compile must not trace is_capture_on()
            return original_function(*args, **kwargs)
        try:
            token = begin(args)
        except Exception as error:  # noqa: BLE001 - must not reach the program
            token = None
            record_failure(error)
        has_returned = False
        try:
            result = original_function(*args, **kwargs)
            has_returned = True
            return result
        finally:
            if token is not None:
                try:
                    end(
                        token, has_returned, args
                    )  # also when the capture was turned off: a scope that was entered is left
                except Exception as error:  # noqa: BLE001
                    record_failure(error)

    setattr(owner, name, wrapper)


def wrap_in_phase(owner: object, name: str, is_compiling: Callable[[], bool], phase: str, mode: int = 0) -> None:
    """Runs every call of owner.name in the given phase and mode (0: the mode of the last phase)."""

    def begin(args):
        return _capture.phase_begin(phase, None, mode)

    def end(depth, has_returned, args):
        _capture.leave_to(depth)

    wrap_function(owner, name, is_compiling, begin, end)
