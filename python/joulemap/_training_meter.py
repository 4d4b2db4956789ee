# SPDX-License-Identifier: Apache-2.0
"""TrainingMeter: the energy of a training, its epochs and its steps, for trainer callbacks. Each is a window
(jm.measure) over the whole machine. The energy of a step is returned after the next sensor update, some steps later,
without waiting. The energy of an epoch and of the training is waited for, at most 0.3 s."""

from __future__ import annotations

import collections
import time
from typing import Any, NamedTuple, Optional

from ._energy import Energy
from ._energy_total import EnergyTotal
from ._forecast import Forecast, predict_total
from ._measure import Measurement, begin

# Seconds between updates of the totals file: the most that a killed run loses.
TOTAL_UPDATE_PERIOD_S = 10.0


class StepEnergy(NamedTuple):
    number: int
    energy: Energy


class TrainingMeter:
    """begin() and end() enclose the training; epochs and steps nest inside. An end without a begin has no effect. Used
    by one thread."""

    def __init__(self, total_file: Any = None) -> None:
        self.total = None if total_file is None else EnergyTotal(total_file)
        self.forecast: Optional[Forecast] = None
        self._training_window: Optional[Measurement] = None
        self._last_energy: Optional[Energy] = None
        self._epoch_window: Optional[Measurement] = None
        self._open_step: Optional[tuple] = None
        self._ended_steps: collections.deque = collections.deque()
        self._next_update_s = 0.0

    def begin(self) -> None:
        self._training_window, self._last_energy = begin("training"), None

    def begin_forecast(self, steps: Any, steps_per_epoch: Any = None, every: Optional[dict] = None) -> None:
        """Predicts the energy of the training from now on. No effect if the trainer does not know the steps."""
        step_counts = [steps, *([] if steps_per_epoch is None else [steps_per_epoch]), *(every or {}).values()]
        if all(isinstance(count, int) and count > 0 for count in step_counts):
            self.forecast = predict_total(steps, steps_per_epoch=steps_per_epoch, every=every)

    def mark_step(self) -> None:
        """Marks the beginning of a step for the prediction."""
        if self.forecast is not None:
            self.forecast.step()

    def begin_epoch(self) -> None:
        self._epoch_window = begin("epoch")

    def end_epoch(self) -> Optional[Energy]:
        window, self._epoch_window = self._epoch_window, None
        if window is None:
            return None
        window.end()
        self._update_total()
        return window.wait()

    def begin_step(self, number: int) -> None:
        self._open_step = number, begin("step")

    def end_step(self) -> list:
        """Ends the step; returns the steps whose energy is final, in order."""
        if self._open_step is not None:
            self._open_step[1].end()
            self._ended_steps.append(self._open_step)
            self._open_step = None
        if time.monotonic() >= self._next_update_s:
            self._update_total()
        return self._take_settled_steps()

    def wait_for_remaining_steps(self) -> list:
        """Waits for the remaining steps and returns them."""
        step_energies = [StepEnergy(number, window.wait()) for number, window in self._ended_steps]
        self._ended_steps.clear()
        return step_energies

    def _take_settled_steps(self) -> list:
        settled_steps = []
        while self._ended_steps:
            number, window = self._ended_steps[0]
            if not window.peek().settled:
                break
            settled_steps.append(StepEnergy(number, window.wait()))
            self._ended_steps.popleft()
        return settled_steps

    def current_energy(self) -> Optional[Energy]:
        """The energy of the training so far; None before begin(). Never less than returned before, although a later
        value may be lower: the energy since the last sensor update is extrapolated, possibly too high."""
        if self._training_window is None:
            return None
        energy = self._training_window.peek()
        last_energy = self._last_energy
        if (
            last_energy is None
            or energy.provenance != last_energy.provenance
            or (energy.joules or 0) >= (last_energy.joules or 0)
        ):
            self._last_energy = energy  # a measurement always replaces an estimate
        return self._last_energy

    def _update_total(self) -> None:
        self._next_update_s = time.monotonic() + TOTAL_UPDATE_PERIOD_S
        if self.total is not None and self._training_window is not None:
            self.total.update(self._training_window.peek(), "running")

    def end(self, failed: bool = False) -> Optional[Energy]:
        """Ends the training and all open windows. Returns the energy of the training; None without begin()."""
        window, self._training_window = self._training_window, None
        self._epoch_window = self._open_step = None
        if self.forecast is not None:
            self.forecast.end()
        if window is None:
            return None
        window.end()
        energy = window.wait()
        if self.total is not None:
            self.total.update(energy, "failed" if failed else "ended")
        return energy


def energy_metrics(kind: str, energy: Energy) -> dict:
    """Values for a logger: "energy/epoch_j" ... Estimates have "estimated_" in their names, so that they are not
    mistaken for measurements. Unknown values are omitted, because loggers would take 0 and NaN for values."""
    provenance_prefix = "" if energy.provenance == "measured" else "estimated_"
    metrics = {
        f"energy/{kind}_{provenance_prefix}j": energy.joules,
        f"energy/{kind}_{provenance_prefix}w": energy.watts,
    }
    return {name: value for name, value in metrics.items() if value is not None}


def total_metrics(total: Optional[EnergyTotal]) -> dict:
    """Values for a logger: the sums over all runs of the totals file."""
    if total is None:
        return {}
    metrics = {"energy/all_runs_j": total.measured_j, "energy/all_runs_estimated_j": total.estimated_j}
    return {name: value for name, value in metrics.items() if value is not None}


def forecast_metrics(forecast: Optional[Forecast]) -> dict:
    """Values for a logger: the predicted energy of the whole training, with its interval."""
    total = None if forecast is None else forecast.total()
    if total is None or total.energy_j is None:
        return {}
    provenance_prefix = "" if total.provenance == "measured" else "estimated_"
    forecast_values = {"forecast": total.energy_j, "forecast_low": total.low_j, "forecast_high": total.high_j}
    return {f"energy/{name}_{provenance_prefix}j": value for name, value in forecast_values.items()}
