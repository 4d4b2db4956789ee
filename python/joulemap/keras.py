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

from ._energy import Energy
from ._training_meter import TrainingMeter, energy_metrics, total_metrics


class EnergyCallback(keras.callbacks.Callback):
    """Adds the energy of each epoch to its logs. per_batch=True also adds the energy of the latest settled batch to
    batch logs. `total_file`: a file that sums the energy of resumed and failed runs."""

    def __init__(self, per_batch: bool = False, total_file: Any = None) -> None:
        super().__init__()
        self._meter = TrainingMeter(total_file)
        self._per_batch = per_batch
        self.batches: list = []  # (number, Energy) of each batch, with per_batch=True
        self.epochs: list = []  # Energy of each epoch
        self.energy: Optional[Energy] = None  # energy of the training, set at its end

    def on_train_begin(self, logs: Any = None) -> None:
        self._meter.begin()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._meter.begin_epoch()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self._per_batch:
            self._meter.begin_step(batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        steps = self._meter.end_step()
        self.batches += steps
        if steps and logs is not None:
            logs.update(energy_metrics("batch", steps[-1].energy))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.batches += self._meter.remaining_steps()
        energy = self._meter.end_epoch()
        if energy is None:
            return
        self.epochs.append(energy)
        if logs is not None:
            logs.update(energy_metrics("epoch", energy))
            logs.update(total_metrics(self._meter.total))

    def on_train_end(self, logs: Any = None) -> None:
        self.energy = self._meter.end()
