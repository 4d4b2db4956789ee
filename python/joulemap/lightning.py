# SPDX-License-Identifier: Apache-2.0
"""Energy in PyTorch Lightning:

    import joulemap.lightning
    trainer = lightning.Trainer(callbacks=[joulemap.lightning.EnergyCallback()])

The trainer's loggers receive "energy/step_j", "energy/epoch_j" and "energy/train_j" ("..._estimated_j" if nothing can
be measured), each also as "_w". Only rank 0 logs; it measures its whole machine.
"""

from __future__ import annotations

from typing import Any, Optional

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:  # older name of the package
    from pytorch_lightning.callbacks import Callback  # type: ignore[no-redef]

from ._energy import Energy
from ._training_meter import TrainingMeter, energy_metrics, total_metrics


class EnergyCallback(Callback):
    """Logs energies. `every_n_steps`: number of steps between two logged steps; by default log_every_n_steps of the
    trainer. `total_file`: a file that sums the energy of resumed and failed runs."""

    def __init__(self, every_n_steps: Optional[int] = None, total_file: Any = None) -> None:
        self._meter = TrainingMeter(total_file)
        self._every = every_n_steps
        self._number = 0
        self.energy: Optional[Energy] = None  # energy of the training, set at its end

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._meter.begin()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._meter.begin_epoch()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._number = trainer.global_step
        if self._number % (self._every or trainer.log_every_n_steps or 1) == 0:
            self._meter.begin_step(self._number)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._log_steps(trainer, self._meter.end_step())

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._log_steps(trainer, self._meter.remaining_steps())
        energy = self._meter.end_epoch()
        if energy is not None:
            metrics = {
                **energy_metrics("epoch", energy),
                **total_metrics(self._meter.total),
                "epoch": trainer.current_epoch,
            }
            self._log(trainer, metrics, trainer.global_step)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._end(trainer, failed=False)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end(trainer, failed=True)

    def _end(self, trainer: Any, failed: bool) -> None:
        energy = self._meter.end(failed)
        if energy is not None:
            self.energy = energy
            self._log(
                trainer, {**energy_metrics("train", energy), **total_metrics(self._meter.total)}, trainer.global_step
            )

    def _log_steps(self, trainer: Any, steps: list) -> None:
        for number, energy in steps:
            self._log(trainer, energy_metrics("step", energy), number)

    def _log(self, trainer: Any, metrics: dict, step: int) -> None:
        if not trainer.is_global_zero:
            return
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step)
