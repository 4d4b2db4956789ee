# SPDX-License-Identifier: Apache-2.0
"""Energy in PyTorch Lightning:

    import joulemap.lightning
    trainer = lightning.Trainer(callbacks=[joulemap.lightning.EnergyCallback()])

The trainer's loggers receive "energy/step_j", "energy/epoch_j" and "energy/train_j" ("..._estimated_j" if nothing can
be measured), each also as "_w", and after each epoch "energy/forecast_j", the prediction for the whole training
(jm.predict_total). Only rank 0 logs; it measures its whole machine.
"""

from __future__ import annotations

from typing import Any, Optional

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:  # older name of the package
    from pytorch_lightning.callbacks import Callback  # type: ignore[no-redef]

from ._early_stop import EarlyStop, broadcast_decision_of_rank_0
from ._energy import Energy
from ._forecast import Forecast
from ._library import JoulemapError
from ._training_meter import TrainingMeter, energy_metrics, forecast_metrics, total_metrics


class EnergyCallback(Callback):
    """Logs energies. `every_n_steps`: number of steps between two logged steps; by default log_every_n_steps of the
    trainer. `total_file`: a JSON file, created if missing, that sums the energy of resumed and failed runs."""

    def __init__(self, every_n_steps: Optional[int] = None, total_file: Any = None) -> None:
        self._meter = TrainingMeter(total_file)
        self._log_every_n_steps = every_n_steps
        self._step_number = 0
        self.energy: Optional[Energy] = None  # energy of the training, set at its end

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._meter.begin()

    @property
    def forecast(self) -> Optional[Forecast]:
        """The running prediction of the whole training: `forecast.total()`. None if the number of steps is unknown."""
        return self._meter.forecast

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        batches, epochs = trainer.num_training_batches, trainer.max_epochs
        if isinstance(batches, int) and isinstance(epochs, int) and trainer.max_steps < 0:
            remaining_epochs = epochs - trainer.current_epoch
            self._meter.begin_forecast(remaining_epochs * batches, steps_per_epoch=batches)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._meter.begin_epoch()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._meter.mark_step()
        self._step_number = trainer.global_step
        if self._step_number % (self._log_every_n_steps or trainer.log_every_n_steps or 1) == 0:
            self._meter.begin_step(self._step_number)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._log_steps(trainer, self._meter.end_step())

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._log_steps(trainer, self._meter.wait_for_remaining_steps())
        energy = self._meter.end_epoch()
        if energy is not None:
            metrics = {
                **energy_metrics("epoch", energy),
                **total_metrics(self._meter.total),
                **forecast_metrics(self.forecast),
                "epoch": trainer.current_epoch,
            }
            self._log_metrics(trainer, metrics, trainer.global_step)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._end_training(trainer, failed=False)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end_training(trainer, failed=True)

    def _end_training(self, trainer: Any, failed: bool) -> None:
        energy = self._meter.end(failed)
        if energy is not None:
            self.energy = energy
            self._log_metrics(
                trainer, {**energy_metrics("train", energy), **total_metrics(self._meter.total)}, trainer.global_step
            )

    def _log_steps(self, trainer: Any, step_energies: list) -> None:
        for number, energy in step_energies:
            self._log_metrics(trainer, energy_metrics("step", energy), number)

    def _log_metrics(self, trainer: Any, metrics: dict, step: int) -> None:
        if not trainer.is_global_zero:
            return
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step)


class EarlyStopCallback(Callback):
    """Stops the training when a further unit of loss costs more than `joules_per_loss` joules (jm.EarlyStop). `monitor`:
    name of the loss in the metrics that the module logs. It is read after each validation, or, with
    on_train_epoch_end=True, after each training epoch. `options`: those of jm.EarlyStop. With several ranks, rank 0
    decides."""

    def __init__(
        self, joules_per_loss: float, monitor: str = "val_loss", on_train_epoch_end: bool = False, **options: Any
    ) -> None:
        self.stop = EarlyStop(joules_per_loss, **options)  # its `reason` is the last decision, in words
        self._monitor, self._checks_at_epoch_end = monitor, on_train_epoch_end

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self.stop.begin()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if not self._checks_at_epoch_end and not trainer.sanity_checking and trainer.state.fn == "fit":
            self._update_early_stop(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if self._checks_at_epoch_end:
            self._update_early_stop(trainer)

    def _update_early_stop(self, trainer: Any) -> None:
        metrics = trainer.callback_metrics
        if self._monitor not in metrics:
            raise JoulemapError(f"the module logs no {self._monitor}: monitor= must be one of {sorted(metrics)}")
        if broadcast_decision_of_rank_0(self.stop.update(metrics[self._monitor])):
            trainer.should_stop = True
