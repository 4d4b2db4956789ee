# SPDX-License-Identifier: Apache-2.0
"""What keeps failures of ours away from the program: one is told, in the recording, and the capture turns itself off."""

from __future__ import annotations

import functools
from typing import Callable

from . import _capture


def tell_failure(error: Exception) -> None:
    _capture.turn_off()
    _capture.diagnose("capture_failed", f"{type(error).__name__}: {error}", "please report this")


def guarded(function: Callable, even_when_off: bool = False) -> Callable:
    """The same function, which gives None where it would raise, or where the capture is off."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if not (even_when_off or _capture.is_on()):
            return None
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the program must not notice
            tell_failure(error)
            return None

    return call


def around(owner: object, name: str, is_compiling: Callable[[], bool], begin: Callable, end: Callable) -> None:
    """Replaces owner.name by a function that calls begin(args) before it and end(token, has_returned, args) after it.

    `begin` and `end` are ours and are guarded; what the program's function raises or returns is as ever. While torch.compile
    looks through the function it sees the plain one.
    """
    original = getattr(owner, name)
    begin, end = guarded(begin), guarded(end, even_when_off=True)  # what has begun is to end

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        if is_compiling():
            return original(*args, **kwargs)
        token = begin(args)
        returned = False
        try:
            result = original(*args, **kwargs)
            returned = True
            return result
        finally:
            if token is not None:
                end(token, returned, args)

    setattr(owner, name, wrapper)


def in_phase(owner: object, name: str, is_compiling: Callable[[], bool], phase: str, mode: int = 0) -> None:
    """All of owner.name is that phase, of that mode (0: of the last one)."""

    def begin(args):
        return _capture.phase_begin(phase, None, mode)

    def end(depth, returned, args):
        _capture.leave_to(depth)

    around(owner, name, is_compiling, begin, end)
