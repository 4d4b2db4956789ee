# SPDX-License-Identifier: Apache-2.0
"""TrainingMeter: the energy of a training, its epochs and its steps, for callbacks of trainers. Each is a window
(jm.measure): what the whole machine drew meanwhile. A step's is told once the sensors were renewed after its end, which is
some steps later: nothing waits for it. An epoch's and the training's are waited for, at most 0.3 s."""

from __future__ import annotations

import collections
import time
from typing import Any, NamedTuple, Optional

from ._energy import Energy
from ._energy_total import EnergyTotal
from ._measure import Measurement, begin

# How often the file of totals is written anew: what a run that is killed may lose.
UPDATE_S = 10.0


class Step(NamedTuple):
    number: int
    energy: Energy


class TrainingMeter:
    """begin and end around all; epochs and steps within. An end without a begin is nothing. One thread."""

    def __init__(self, total_file: Any = None) -> None:
        self.total = None if total_file is None else EnergyTotal(total_file)
        self._run: Optional[Measurement] = None
        self._told: Optional[Energy] = None
        self._epoch: Optional[Measurement] = None
        self._step: Optional[tuple] = None
        self._ended: collections.deque = collections.deque()
        self._next_update_s = 0.0

    def begin(self) -> None:
        self._run, self._told = begin("training"), None

    def begin_epoch(self) -> None:
        self._epoch = begin("epoch")

    def end_epoch(self) -> Optional[Energy]:
        window, self._epoch = self._epoch, None
        if window is None:
            return None
        window.end()
        self._keep_total()
        return window.wait()

    def begin_step(self, number: int) -> None:
        self._step = number, begin("step")

    def end_step(self) -> list:
        """Ends the step; gives those, in order, of which more will not be known."""
        if self._step is not None:
            self._step[1].end()
            self._ended.append(self._step)
            self._step = None
        if time.monotonic() >= self._next_update_s:
            self._keep_total()
        return self._settled()

    def rest_of_steps(self) -> list:
        """The steps that were not told yet; waits for them."""
        told = [Step(number, window.wait()) for number, window in self._ended]
        self._ended.clear()
        return told

    def _settled(self) -> list:
        told = []
        while self._ended:
            number, window = self._ended[0]
            if not window.peek().settled:
                break
            told.append(Step(number, window.wait()))
            self._ended.popleft()
        return told

    def so_far(self) -> Optional[Energy]:
        """Never less than was told before: the last moments are not read yet but drawn on, maybe a little too far."""
        if self._run is None:
            return None
        energy = self._run.peek()
        known = self._told
        if known is None or energy.provenance != known.provenance or (energy.joules or 0) >= (known.joules or 0):
            self._told = energy  # a measurement replaces an estimate, however large
        return self._told

    def _keep_total(self) -> None:
        self._next_update_s = time.monotonic() + UPDATE_S
        if self.total is not None and self._run is not None:
            self.total.update(self._run.peek(), "running")

    def end(self, failed: bool = False) -> Optional[Energy]:
        """Ends all that is open."""
        window, self._run = self._run, None
        self._epoch = self._step = None
        if window is None:
            return None
        window.end()
        energy = window.wait()
        if self.total is not None:
            self.total.update(energy, "failed" if failed else "ended")
        return energy


def numbers(kind: str, energy: Energy) -> dict:
    """For a logger: "energy/epoch_j" ... Estimates are called so: nobody is to take them for measured. What is not known is
    left out, because loggers take 0 and NaN for values."""
    estimated = "" if energy.provenance == "measured" else "estimated_"
    named = {f"energy/{kind}_{estimated}j": energy.joules, f"energy/{kind}_{estimated}w": energy.watts}
    return {name: value for name, value in named.items() if value is not None}


def total_numbers(total: Optional[EnergyTotal]) -> dict:
    """Of all runs of the file."""
    if total is None:
        return {}
    named = {"energy/all_runs_j": total.measured_j, "energy/all_runs_estimated_j": total.estimated_j}
    return {name: value for name, value in named.items() if value is not None}
