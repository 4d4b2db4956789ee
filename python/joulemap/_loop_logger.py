# SPDX-License-Identifier: Apache-2.0
"""LoopLogger: the energy of a training loop that a program writes itself, for trackers of experiments."""

from __future__ import annotations

from typing import Any, Optional

from ._energy import Energy
from ._training_meter import TrainingMeter, numbers, total_numbers


class LoopLogger:
    """Within its `with` block step() and epoch() say that one begins, as jm.step does; each ends with the next. Subclasses
    say where numbers go. A block that ends by an exception is logged as well: failed runs have used energy, too."""

    def __init__(self, total_file: Any = None) -> None:
        self._meter = TrainingMeter(total_file)
        self._step: Optional[int] = None
        self._epochs = 0
        self.energy: Optional[Energy] = None  # of all, once it has ended

    def log(self, told: dict, step: Optional[int]) -> None:
        raise NotImplementedError

    def __enter__(self) -> Any:
        self._meter.begin()
        return self

    def step(self, number: Optional[int] = None) -> None:
        self._log_steps(self._meter.end_step())
        if number is None:
            number = 0 if self._step is None else self._step + 1
        self._step = number
        self._meter.begin_step(number)

    def epoch(self) -> None:
        self._end_epoch()
        self._meter.begin_epoch()

    def _end_epoch(self) -> None:
        self._log_steps([*self._meter.end_step(), *self._meter.rest_of_steps()])
        energy = self._meter.end_epoch()
        if energy is not None:
            self.log({**numbers("epoch", energy), **total_numbers(self._meter.total)}, self._step)

    def _log_steps(self, steps: list) -> None:
        for number, energy in steps:
            self.log(numbers("step", energy), number)

    def __exit__(self, kind: Any, value: object, traceback: object) -> None:
        self._end_epoch()
        self.energy = self._meter.end(failed=kind is not None)
        if self.energy is not None:
            self.log({**numbers("train", self.energy), **total_numbers(self._meter.total)}, self._step)
