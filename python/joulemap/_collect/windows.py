# SPDX-License-Identifier: Apache-2.0
"""A step that waits for its host, timed while the host is left alone.

A processor's sibling may begin to work for somebody else in the middle of a run, and end again, within milliseconds or
for minutes. So the run is cut into windows of a few steps. What others do only makes windows longer: the quickest ones
tell how long a step takes, and after a long one the process looks for a quiet processor. Power is told of the whole run
only; what a step draws above rest is the same in all windows, and at rest the GPU draws for as long as a step takes.
"""

from __future__ import annotations

import time
from typing import Any, Callable, NamedTuple

WINDOW_S = 0.02
# Windows that take at most so much longer than the quickest are those of a host that is left alone.
QUIET = 1.05
# After one that takes longer than this the process looks for another processor.
DISTURBED = 1.15
# Launches right after steps find colder caches than others.
SLOW_LAUNCH = 1.25
# Fewer quiet windows might be chance.
LEAST = 4
# Of the time asked for: longer is not waited for a quiet host.
MOST = 3.0


class Window(NamedTuple):
    step_s: float  # the mean of its steps
    launch_s: float  # of a launch right after it


class Steady(NamedTuple):
    """What the windows of one run tell."""

    time_s: float  # of a step
    launch_s: float
    quiet: int  # windows that count; 0: too few were alike, and all of them do


def quiet_of(windows: list[Window], launch_s: float) -> list[Window]:
    """Beside the quickest, and with launches that are not far slower than the quickest of this process: a neighbour may
    have worked all the while."""
    quickest_s = min(one.step_s for one in windows)
    return [one for one in windows if one.step_s <= QUIET * quickest_s and one.launch_s <= SLOW_LAUNCH * launch_s]


def told_by(windows: list[Window], quickest_launch_s: float) -> Steady:
    quiet = quiet_of(windows, quickest_launch_s)
    counted = quiet if len(quiet) >= LEAST else windows
    time_s = sum(one.step_s for one in counted) / len(counted)
    # Of these, too, what others did made some longer.
    launch_s = sorted(one.launch_s for one in counted)[len(counted) // 4]
    return Steady(time_s, launch_s, len(quiet) if counted is quiet else 0)


def run_windows(host: Any, timed: Callable[[int], float], step_s: float, active_s: float) -> tuple[list[Window], int]:
    """`timed` runs so many steps, and one before them that fills the queue, and tells what they took. The windows, and
    how many steps were run in all."""
    each = max(1, round(WINDOW_S / step_s))
    windows: list[Window] = []
    until_s = time.monotonic() + MOST * active_s
    while not windows or time.monotonic() < until_s:
        windows.append(Window(timed(each) / each, host.launch_s()))
        quiet = quiet_of(windows, host.quickest_s)
        if len(quiet) >= LEAST and sum(one.step_s for one in quiet) * each >= active_s / 2:
            break
        quickest_s = min(one.step_s for one in windows)
        if windows[-1].step_s > DISTURBED * quickest_s or windows[-1].launch_s > SLOW_LAUNCH * host.quickest_s:
            host.find_quiet()
    return windows, (each + 1) * len(windows)


def quiet_energy_j(watts: float, run_s: float, steps: int, time_s: float, idle_w: float) -> float:
    """Of a step that takes `time_s`, told by a run of so many steps and seconds in which others took longer."""
    return (watts - idle_w) * run_s / steps + idle_w * time_s
