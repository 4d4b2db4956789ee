# SPDX-License-Identifier: Apache-2.0
"""The meters of a load level: a window of jm.measure, or none if the server is on another machine."""

from __future__ import annotations

from typing import Optional

from .. import _measure
from .._energy import Energy


class WindowMeter:
    """Energy of this machine while a window is open."""

    def __init__(self) -> None:
        self._window: Optional[_measure.Measurement] = None

    def start(self) -> None:
        """Opens the sensors, so that the first window begins on time."""
        _measure.begin("bench serve: sensors").end()

    def begin(self) -> None:
        self._window = _measure.begin("bench serve")

    def end(self) -> None:
        if self._window is not None:
            self._window.end()

    def read(self) -> Optional[Energy]:
        """The energy of the last window, after the next sensor update; None if it was not closed."""
        window, self._window = self._window, None
        if window is None:
            return None
        return window.wait() if window.ended else None


class NullMeter:
    """For a server on another machine: its energy is unknown here."""

    def start(self) -> None:
        return

    def begin(self) -> None:
        return

    def end(self) -> None:
        return

    def read(self) -> Optional[Energy]:
        return None
