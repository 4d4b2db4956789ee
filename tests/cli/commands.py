"""Commands to measure, and a helper that waits for their effects."""

from __future__ import annotations

import sys
import time

BUSY_PROGRAM = "import time\nend = time.time() + {}\nwhile time.time() < end: pass"


def make_busy_command(seconds: float) -> list[str]:
    return [sys.executable, "-c", BUSY_PROGRAM.format(seconds)]


def wait_for(condition, seconds: float = 20) -> None:
    """Polls until a condition holds; fails only if it never does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)
