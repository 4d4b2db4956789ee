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
MAX_UNDISTURBED_STEP_RATIO = 1.05
# After a window slower than this factor, the process looks for another processor.
MIN_DISTURBED_STEP_RATIO = 1.15
# Tolerance for launches right after steps, which have colder caches than others.
MAX_LAUNCH_RATIO = 1.25
# Fewer windows with an idle host could be coincidence.
MIN_WINDOWS = 4
# Maximum run time as a multiple of the requested time, when waiting for an idle host.
MAX_WINDOW_TIME_FACTOR = 3.0


class StepWindow(NamedTuple):
    step_s: float  # mean duration of its steps
    launch_s: float  # duration of a launch right after the window


class StepWindowSummary(NamedTuple):
    """Result of the windows of one run."""

    time_s: float  # time of a step
    launch_s: float
    undisturbed: int  # number of windows used; 0: too few agreed, so all were used


def select_undisturbed(windows: list[StepWindow], launch_s: float) -> list[StepWindow]:
    """Returns the windows close to the fastest one whose launches are not far slower than the fastest of this
    process. The launch criterion detects a co-tenant that was active during all windows."""
    fastest_step_s = min(window.step_s for window in windows)
    return [
        window
        for window in windows
        if window.step_s <= MAX_UNDISTURBED_STEP_RATIO * fastest_step_s and window.launch_s <= MAX_LAUNCH_RATIO * launch_s
    ]


def summarize_windows(windows: list[StepWindow], fastest_launch_s: float) -> StepWindowSummary:
    undisturbed_windows = select_undisturbed(windows, fastest_launch_s)
    used_windows = undisturbed_windows if len(undisturbed_windows) >= MIN_WINDOWS else windows
    time_s = sum(window.step_s for window in used_windows) / len(used_windows)
    # Other processes slowed down some of these launches, too: use the lower quartile.
    launch_s = sorted(window.launch_s for window in used_windows)[len(used_windows) // 4]
    return StepWindowSummary(time_s, launch_s, len(undisturbed_windows) if used_windows is undisturbed_windows else 0)


def run_windows(
    host_speed: Any, time_steps: Callable[[int], float], step_s: float, active_s: float
) -> tuple[list[StepWindow], int]:
    """Runs windows until enough are undisturbed or time runs out. `time_steps(n)` runs one step to fill the queue, then
    n timed steps, and returns their total time in s. Returns the windows and the total number of steps run."""
    steps_per_window = max(1, round(WINDOW_S / step_s))
    windows: list[StepWindow] = []
    deadline_s = time.monotonic() + MAX_WINDOW_TIME_FACTOR * active_s
    while not windows or time.monotonic() < deadline_s:
        windows.append(StepWindow(time_steps(steps_per_window) / steps_per_window, host_speed.time_launch_s()))
        undisturbed_windows = select_undisturbed(windows, host_speed.fastest_launch_s)
        if (
            len(undisturbed_windows) >= MIN_WINDOWS
            and sum(window.step_s for window in undisturbed_windows) * steps_per_window >= active_s / 2
        ):
            break
        fastest_step_s = min(window.step_s for window in windows)
        if (
            windows[-1].step_s > MIN_DISTURBED_STEP_RATIO * fastest_step_s
            or windows[-1].launch_s > MAX_LAUNCH_RATIO * host_speed.fastest_launch_s
        ):
            host_speed.move_to_fastest_processors()
    return windows, (steps_per_window + 1) * len(windows)


def undisturbed_energy_j(watts: float, run_s: float, steps: int, time_s: float, idle_w: float) -> float:
    """Returns the energy of an undisturbed step of `time_s`, from a run of `steps` steps in `run_s` that includes
    slower ones."""
    return (watts - idle_w) * run_s / steps + idle_w * time_s
