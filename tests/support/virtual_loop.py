"""An event loop with virtual time: when no task can run, time jumps to the next timer. Tests of schedules neither wait nor
depend on the speed of the machine."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any, Coroutine, Optional


class _VirtualTimeSelector(selectors.SelectSelector):
    """Waits for nothing: advances the time of the loop instead."""

    loop: VirtualLoop

    def select(self, timeout: Optional[float] = None) -> list:
        ready_events = super().select(0)
        if ready_events or timeout == 0:
            return ready_events
        assert timeout is not None, "all tasks wait, and no timer is set"
        self.loop.now_s += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now_s = 1000.0
        selector = _VirtualTimeSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now_s

    def advance_time(self, seconds: float) -> None:
        """As code does that computes without waiting."""
        self.now_s += seconds


def run(coroutine: Coroutine) -> Any:
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
