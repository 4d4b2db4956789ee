# SPDX-License-Identifier: Apache-2.0
"""LoopLogger: the energy of a hand-written training loop, for experiment trackers."""

from __future__ import annotations

from typing import Any, Optional

from ._energy import Energy
from ._training_meter import TrainingMeter, energy_metrics, total_metrics


class LoopLogger:
    """Logs the energy of a hand-written training loop: a context manager around the loop. A block that ends with an
    exception is logged as well, because failed runs also use energy. `total_file`: a JSON file, created if
    missing, that sums the energy of resumed and failed runs."""

    def __init__(self, total_file: Any = None) -> None:
        self._meter = TrainingMeter(total_file)
        self._step: Optional[int] = None
        self.energy: Optional[Energy] = None  # energy of the whole block, set at its end

    def log(self, metrics: dict, step: Optional[int]) -> None:
        raise NotImplementedError

    def __enter__(self) -> Any:
        self._meter.begin()
        return self

    def step(self, number: Optional[int] = None) -> None:
        """Begins a step, and ends the step before."""
        self._log_steps(self._meter.end_step())
        if number is None:
            number = 0 if self._step is None else self._step + 1
        self._step = number
        self._meter.begin_step(number)

    def epoch(self) -> None:
        """Begins an epoch, and ends the epoch before."""
        self._end_epoch()
        self._meter.begin_epoch()

    def _end_epoch(self) -> None:
        self._log_steps([*self._meter.end_step(), *self._meter.wait_for_remaining_steps()])
        energy = self._meter.end_epoch()
        if energy is not None:
            self.log({**energy_metrics("epoch", energy), **total_metrics(self._meter.total)}, self._step)

    def _log_steps(self, steps: list) -> None:
        for number, energy in steps:
            self.log(energy_metrics("step", energy), number)

    def __exit__(self, kind: Any, value: object, traceback: object) -> None:
        self._end_epoch()
        self.energy = self._meter.end(failed=kind is not None)
        if self.energy is not None:
            self.log({**energy_metrics("train", self.energy), **total_metrics(self._meter.total)}, self._step)
