# SPDX-License-Identifier: Apache-2.0
"""Times a host-bound step while the host is undisturbed.

Another tenant may start or stop using the sibling hyperthread of a processor at any time, for milliseconds or
minutes. So the run is split into windows of a few steps. Other processes only make windows longer: the fastest
windows give the step time, and after a slow one the process moves to an idle processor. Power is known for the whole
run only. The energy of a step above idle is the same in all windows; idle energy is idle power times the step time.
"""

from __future__ import annotations

import time
from typing import Any, Callable, NamedTuple

WINDOW_S = 0.02
# Windows up to this factor slower than the fastest one count as undisturbed.
QUIET = 1.05
# After a window slower than this factor, the process looks for another processor.
DISTURBED = 1.15
# Tolerance for launches right after steps, which have colder caches than others.
SLOW_LAUNCH = 1.25
# Fewer quiet windows could be coincidence.
LEAST = 4
# Maximum run time as a multiple of the requested time, when waiting for an idle host.
MOST = 3.0


class Window(NamedTuple):
    step_s: float  # mean duration of its steps
    launch_s: float  # duration of a launch right after the window


class Steady(NamedTuple):
    """Result of the windows of one run."""

    time_s: float  # time of a step
    launch_s: float
    quiet: int  # number of windows used; 0: too few agreed, so all were used


def quiet_of(windows: list[Window], launch_s: float) -> list[Window]:
    """Returns the windows close to the fastest one whose launches are not far slower than the fastest of this
    process. The launch criterion detects a co-tenant that was active during all windows."""
    quickest_s = min(one.step_s for one in windows)
    return [one for one in windows if one.step_s <= QUIET * quickest_s and one.launch_s <= SLOW_LAUNCH * launch_s]


def told_by(windows: list[Window], quickest_launch_s: float) -> Steady:
    quiet = quiet_of(windows, quickest_launch_s)
    counted = quiet if len(quiet) >= LEAST else windows
    time_s = sum(one.step_s for one in counted) / len(counted)
    # Other processes slowed down some of these launches, too: use the lower quartile.
    launch_s = sorted(one.launch_s for one in counted)[len(counted) // 4]
    return Steady(time_s, launch_s, len(quiet) if counted is quiet else 0)


def run_windows(host: Any, timed: Callable[[int], float], step_s: float, active_s: float) -> tuple[list[Window], int]:
    """`timed(n)` runs one step to fill the queue, then n timed steps, and returns their total time in s. Returns the
    windows and the total number of steps run."""
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
    """Returns the energy of an undisturbed step of `time_s`, from a run of `steps` steps in `run_s` that includes
    slower ones."""
    return (watts - idle_w) * run_s / steps + idle_w * time_s
