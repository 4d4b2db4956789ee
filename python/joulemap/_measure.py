# SPDX-License-Identifier: Apache-2.0
"""Windows: `with measure("epoch") as m`, `@measure`, begin() and end(). The hot path is in _hot."""

from __future__ import annotations

from functools import wraps

from . import _hot
from ._loading import load_attribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, TypeVar, Union, overload

    from ._energy import Diagnostic, Domain, Energy

    F = TypeVar("F", bound=Callable[..., Any])

# Flags of code objects (inspect.CO_*) that identify generators, coroutines and asynchronous generators.
_GENERATOR_FLAG, _COROUTINE_FLAG, _ASYNC_GENERATOR_FLAG = 0x20, 0x80, 0x200


# _library.read_energy, loaded on first use: _library needs ctypes and dataclasses, which dominate the import time.
_loaded_read_energy: Optional[Callable[..., Energy]] = None


def _read_energy(window: _hot.Window, wait: bool) -> Energy:
    global _loaded_read_energy
    if _loaded_read_energy is None:
        _loaded_read_energy = load_attribute("_library", "read_energy")  # type: ignore[assignment]
    return _loaded_read_energy(window, wait=wait)


class Measurement(_hot.Window):
    """A window and its energy. Reading an attribute waits for the first sensor update after the end of the window, at
    most 0.3 s; the wait is not part of the window. The energy of a window shorter than the update period is
    interpolated, and the interval includes the interpolation error.

    Any thread or task may end and read a window. It can be reused: a new `with` opens a new window. In a forked child,
    windows of the parent have no energy, and `reason` is the cause.
    """

    __slots__ = ("_id_and_energy", "__weakref__")

    def wait(self) -> Energy:
        """The energy of the ended window. Waits for the next sensor update, at most 0.3 s."""
        result = getattr(self, "_id_and_energy", None)
        if result is None or result[0] != self.id:
            energy = _read_energy(self, wait=True)
            self.release()
            result = self._id_and_energy = (self.id, energy)
        return result[1]

    def peek(self) -> Energy:
        """The energy known now, without waiting; for an open window, the energy so far."""
        if self.id == 0:
            return self.wait()
        return _read_energy(self, wait=False)

    @property
    def joules(self) -> Optional[float]:
        """Energy of the counted domains, in J: measured if any domain is measured, otherwise estimated. If None, see
        `reason`."""
        return self.wait().joules

    @property
    def energy_j(self) -> Optional[float]:
        """Same value as `joules`."""
        return self.wait().energy_j

    @property
    def low_j(self) -> Optional[float]:
        """Lower bound of the 95 % interval of the energy; never below 0."""
        return self.wait().low_j

    @property
    def high_j(self) -> Optional[float]:
        """Upper bound of the 95 % interval of the energy."""
        return self.wait().high_j

    @property
    def uncertainty_j(self) -> Optional[float]:
        """Half width of the 95 % interval of `joules`, in J."""
        return self.wait().uncertainty_j

    @property
    def seconds(self) -> Optional[float]:
        """Duration of the window, in s."""
        return self.wait().seconds

    @property
    def time_s(self) -> Optional[float]:
        """Same value as `seconds`."""
        return self.wait().time_s

    @property
    def watts(self) -> Optional[float]:
        """Mean power, in W."""
        return self.wait().watts

    @property
    def domains(self) -> list[Domain]:
        """A list of Domain: one per package, memory, GPU ..."""
        return self.wait().domains

    @property
    def provenance(self) -> Optional[str]:
        """Provenance of `joules`: "measured", "estimated" or None."""
        return self.wait().provenance

    @property
    def reason(self) -> str:
        """Why the energy is unknown; otherwise empty."""
        return self.wait().reason

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """A list of Diagnostic: problems with the data behind the energy."""
        return self.wait().diagnostics

    def __repr__(self) -> str:
        if self.id == 0 and getattr(self, "_id_and_energy", None) is None:
            return f"{self.name}: not begun"
        if not self.ended:
            return f"{self.name}: still open"
        return f"{self.name}: {self.wait()}"

    def __call__(self, function: F) -> F:
        """`@measure("name")`."""
        return _wrap_function(function, self.name)


def _wrap_function(function: F, name: str) -> F:
    """Wraps `function` so that each call is a window. `last` is the Measurement of the call that ended last, `calls`
    the number of calls.

    The window of a coroutine or generator is open from its first step to its end, including suspensions.
    """
    code_flags = getattr(getattr(function, "__code__", None), "co_flags", 0)

    def record_call(window: Measurement) -> None:
        wrapper.calls += 1
        wrapper.last = window

    if code_flags & _COROUTINE_FLAG:

        @wraps(function)
        async def wrapper(*args, **kwargs):
            window = Measurement(name)
            try:
                with window:
                    return await function(*args, **kwargs)
            finally:
                record_call(window)

    elif code_flags & _ASYNC_GENERATOR_FLAG:

        @wraps(function)
        async def wrapper(*args, **kwargs):
            window = Measurement(name)
            try:
                with window:
                    async for value in function(*args, **kwargs):
                        yield value
            finally:
                record_call(window)

    elif code_flags & _GENERATOR_FLAG:

        @wraps(function)
        def wrapper(*args, **kwargs):
            window = Measurement(name)
            try:
                with window:
                    return (yield from function(*args, **kwargs))
            finally:
                record_call(window)

    else:

        @wraps(function)
        def wrapper(*args, **kwargs):
            window = Measurement(name)
            try:
                with window:
                    return function(*args, **kwargs)
            finally:
                record_call(window)

    wrapper.last = None
    wrapper.calls = 0
    return wrapper


if TYPE_CHECKING:

    @overload
    def measure(what: str = ...) -> Measurement: ...
    @overload
    def measure(what: F) -> F: ...


def measure(what: Union[str, Callable[..., Any]] = "window") -> Any:
    """Measures the energy of a `with` statement or of a function: use it with `with` or as a decorator. Each call of a
    decorated function is a window.

        with jm.measure("epoch") as m:
            train()
        print(m.joules, m.uncertainty_j)

        @jm.measure
        def step(): ...
        step()
        print(step.last, step.calls)        # the Measurement of the last call, the number of calls

    The energy is the sum of the measured domains while the window is open, of all processes; if no domain is measured,
    it is the estimate. Windows may nest, overlap and end in another thread. An exception closes the window and
    propagates. The window of a coroutine or generator is open from its first step to its end, including suspensions.
    """
    if isinstance(what, str):
        return Measurement(what)
    if not callable(what):
        raise TypeError(f"measure() needs a name or a function, not {type(what).__name__}")
    return _wrap_function(what, getattr(what, "__qualname__", "function"))


def begin(name: str = "window") -> Measurement:
    """Opens a window; end() closes it. For code where `with` does not fit."""
    return Measurement(name).begin()


def end(window: Measurement) -> Measurement:
    """Closes a window and returns it. Closing it twice has no effect."""
    window.end()
    return window
