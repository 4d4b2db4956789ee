# SPDX-License-Identifier: Apache-2.0
"""Windows: `with measure("epoch") as m`, `@measure`, begin() and end(). All of the hot path is in _hot."""

from __future__ import annotations

from functools import wraps

from . import _hot
from ._loading import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, TypeVar, Union, overload

    from ._energy import Diagnostic, Domain, Energy

    F = TypeVar("F", bound=Callable[..., Any])

# Of a code object (inspect.CO_*): what calling the function gives.
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


# What is loaded when it is first asked for: it needs ctypes and dataclasses, which take longer than all the rest.
_loaded_ask: Optional[Callable[..., Energy]] = None


def _ask(window: _hot.Window, wait: bool) -> Energy:
    global _loaded_ask
    if _loaded_ask is None:
        _loaded_ask = load("_library", "ask")  # type: ignore[assignment]
    return _loaded_ask(window, wait=wait)


class Measurement(_hot.Window):
    """A window and what it used. The properties wait for the sensors' next refresh after its end, some milliseconds.

    Any thread or task may end it and ask it. It can be used again: a new `with` opens a new window.
    """

    __slots__ = ("_told", "__weakref__")

    def wait(self) -> Energy:
        """What it used; waits for the sensors' next refresh, at most 0.3 s. The window must have ended."""
        told = getattr(self, "_told", None)
        if told is None or told[0] != self.id:
            energy = _ask(self, wait=True)
            self.release()
            told = self._told = (self.id, energy)
        return told[1]

    def peek(self) -> Energy:
        """What is known now, without waiting; of an open window, what it used so far."""
        if self.id == 0:
            return self.wait()
        return _ask(self, wait=False)

    @property
    def joules(self) -> Optional[float]:
        """Energy of the counted domains: measured where something is, else estimated. None: see `reason`."""
        return self.wait().joules

    @property
    def uncertainty_j(self) -> Optional[float]:
        """Half width of the 95 % interval of `joules`."""
        return self.wait().uncertainty_j

    @property
    def seconds(self) -> Optional[float]:
        """How long it was open."""
        return self.wait().seconds

    @property
    def watts(self) -> Optional[float]:
        """Mean power."""
        return self.wait().watts

    @property
    def domains(self) -> list[Domain]:
        """One row for each package, memory, GPU ..."""
        return self.wait().domains

    @property
    def provenance(self) -> Optional[str]:
        """Of `joules`: "measured", "estimated" or None."""
        return self.wait().provenance

    @property
    def reason(self) -> str:
        """Why there are no joules; else empty."""
        return self.wait().reason

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What was wrong with the data behind it."""
        return self.wait().diagnostics

    def __repr__(self) -> str:
        if self.id == 0 and getattr(self, "_told", None) is None:
            return f"{self.name}: not begun"
        if not self.ended:
            return f"{self.name}: still open"
        return f"{self.name}: {self.wait()}"

    def __call__(self, function: F) -> F:
        """`@measure("name")`."""
        return _measured(function, self.name)


def _measured(function: F, name: str) -> F:
    """The function, each call of it a window. `last` is the Measurement of the call that ended last, `calls` their number.

    Of a coroutine or generator the window is open from its first step to its end, also while it is suspended.
    """
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)

    def finished(window: Measurement) -> None:
        wrapper.calls += 1
        wrapper.last = window

    if flags & _COROUTINE:

        @wraps(function)
        async def wrapper(*args, **kwargs):
            window = Measurement(name)
            try:
                with window:
                    return await function(*args, **kwargs)
            finally:
                finished(window)

    elif flags & _ASYNC_GENERATOR:

        @wraps(function)
        async def wrapper(*args, **kwargs):
            window = Measurement(name)
            try:
                with window:
                    async for value in function(*args, **kwargs):
                        yield value
            finally:
                finished(window)

    elif flags & _GENERATOR:

        @wraps(function)
        def wrapper(*args, **kwargs):
            window = Measurement(name)
            try:
                with window:
                    return (yield from function(*args, **kwargs))
            finally:
                finished(window)

    else:

        @wraps(function)
        def wrapper(*args, **kwargs):
            window = Measurement(name)
            try:
                with window:
                    return function(*args, **kwargs)
            finally:
                finished(window)

    wrapper.last = None
    wrapper.calls = 0
    return wrapper


if TYPE_CHECKING:

    @overload
    def measure(what: str = ...) -> Measurement: ...
    @overload
    def measure(what: F) -> F: ...


def measure(what: Union[str, Callable[..., Any]] = "window") -> Any:
    """A window for `with`; or, as a decorator, a function whose calls are windows."""
    if isinstance(what, str):
        return Measurement(what)
    if not callable(what):
        raise TypeError(f"measure() takes a name or a function, not {type(what).__name__}")
    return _measured(what, getattr(what, "__qualname__", "function"))


def begin(name: str = "window") -> Measurement:
    """Opens a window; end() closes it. For code that `with` does not fit."""
    return Measurement(name).begin()


def end(window: Measurement) -> Measurement:
    """Closes a window and gives it back. Closing it twice changes nothing."""
    window.end()
    return window
