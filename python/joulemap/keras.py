# SPDX-License-Identifier: Apache-2.0
"""Energy in Keras 3 with any backend:

    import joulemap.keras
    history = model.fit(x, y, callbacks=[joulemap.keras.EnergyCallback()])
    print(history.history["energy/epoch_j"])      # "energy/epoch_estimated_j" if nothing can be measured

Put it before other loggers (TensorBoard, CSVLogger, History): only callbacks after it receive the values it adds.
"""

from __future__ import annotations

from typing import Any, Optional

import keras

from ._early_stop import EarlyStop
from ._energy import Energy
from ._forecast import Forecast
from ._library import JoulemapError
from ._training_meter import TrainingMeter, energy_metrics, forecast_metrics, total_metrics


class EnergyCallback(keras.callbacks.Callback):
    """Adds the energy of each epoch to its logs, and "energy/forecast_j", the prediction for the whole training
    (jm.predict_total). per_batch=True also adds the energy of the most recent batch whose energy is
    final to batch logs. `total_file`: a JSON file, created if missing, that sums the energy of resumed and failed runs."""

    def __init__(self, per_batch: bool = False, total_file: Any = None) -> None:
        super().__init__()
        self._meter = TrainingMeter(total_file)
        self._per_batch = per_batch
        self.batches: list = []  # (number, Energy) of each batch, with per_batch=True
        self.epochs: list = []  # Energy of each epoch
        self.energy: Optional[Energy] = None  # energy of the training, set at its end

    @property
    def forecast(self) -> Optional[Forecast]:
        """The running prediction of the whole training: `forecast.total()`. None if the number of steps is unknown."""
        return self._meter.forecast

    def on_train_begin(self, logs: Any = None) -> None:
        self._meter.begin()
        steps, epochs = (self.params or {}).get("steps"), (self.params or {}).get("epochs")
        if steps and epochs:
            self._meter.begin_forecast(epochs * steps, steps_per_epoch=steps)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._meter.begin_epoch()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._meter.mark_step()
        if self._per_batch:
            self._meter.begin_step(batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        steps = self._meter.end_step()
        self.batches += steps
        if steps and logs is not None:
            logs.update(energy_metrics("batch", steps[-1].energy))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.batches += self._meter.wait_for_remaining_steps()
        energy = self._meter.end_epoch()
        if energy is None:
            return
        self.epochs.append(energy)
        if logs is not None:
            logs.update(energy_metrics("epoch", energy))
            logs.update(total_metrics(self._meter.total))
            logs.update(forecast_metrics(self.forecast))

    def on_train_end(self, logs: Any = None) -> None:
        self.energy = self._meter.end()


class EarlyStopCallback(keras.callbacks.Callback):
    """Stops the training when a further unit of loss costs more than `joules_per_loss` joules (jm.EarlyStop). `monitor`:
    name of the loss in the logs of epochs. `options`: those of jm.EarlyStop."""

    def __init__(self, joules_per_loss: float, monitor: str = "val_loss", **options: Any) -> None:
        super().__init__()
        self.stop = EarlyStop(joules_per_loss, **options)  # its `reason` is the last decision, in words
        self._monitor = monitor

    def on_train_begin(self, logs: Any = None) -> None:
        self.stop.begin()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if self._monitor not in (logs or {}):
            raise JoulemapError(f"the epoch has no {self._monitor}: monitor= must be one of {sorted(logs or {})}")
        if self.stop.update((logs or {})[self._monitor]):
            self.model.stop_training = True
