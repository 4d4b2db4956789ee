"""Commands to measure, and how to wait for what they do."""

from __future__ import annotations

import sys
import time

BUSY = "import time\nend = time.time() + {}\nwhile time.time() < end: pass"


def busy(seconds: float) -> list[str]:
    return [sys.executable, "-c", BUSY.format(seconds)]


def wait_for(condition, seconds: float = 20) -> None:
    """Waits for a state of the world, not for time: fails only when it never comes."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)
