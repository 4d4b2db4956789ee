# SPDX-License-Identifier: Apache-2.0
"""Energy in the Trainer of Hugging Face's transformers:

    import joulemap.huggingface
    trainer = transformers.Trainer(...)
    joulemap.huggingface.add_to(trainer)
    trainer.train()

All logs of the trainer (trainer_state.json, TensorBoard, W&B, MLflow ...) then contain two more values.
"energy/train_j" is the energy of the training so far, "energy/epoch_j" that of the last epoch. They are named
"..._estimated_j" if nothing can be measured.
"""

from __future__ import annotations

from typing import Any, Optional

from transformers import TrainerCallback

from ._energy import Energy
from ._training_meter import TrainingMeter, energy_metrics, total_metrics


class EnergyCallback(TrainerCallback):
    """Adds energies to the logs. Use add_to(): passed to Trainer(callbacks=[...]), the callback runs after the
    callbacks that report logs (TensorBoard, W&B ...), which then miss its values. `total_file`: a file that sums the
    energy of resumed and failed runs; a run whose training raised stays "running" there."""

    def __init__(self, total_file: Any = None) -> None:
        self._meter = TrainingMeter(total_file)
        self._last_epoch: Optional[Energy] = None
        self.epochs: list = []  # Energy of each epoch
        self.energy: Optional[Energy] = None  # energy of the training, set at its end

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._meter.begin()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._meter.begin_epoch()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._meter.end_step()  # updates the totals file

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._last_epoch = self._meter.end_epoch()
        if self._last_epoch is not None:
            self.epochs.append(self._last_epoch)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        energy = self._meter.current_energy() or self.energy
        if logs is None or energy is None:
            return
        metrics = {**energy_metrics("train", energy), **total_metrics(self._meter.total)}
        if self._last_epoch is not None:
            metrics.update(energy_metrics("epoch", self._last_epoch))
            self._last_epoch = None
        logs.update(metrics)
        if state.log_history:  # its last entry is a copy of the logs that was made before this callback
            state.log_history[-1].update(metrics)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.energy = self._meter.end()


def add_to(trainer: Any, total_file: Any = None) -> EnergyCallback:
    """Adds a callback before all others of the trainer, so that they receive its values."""
    callback = EnergyCallback(total_file)
    trainer.add_callback(callback)
    order = trainer.callback_handler.callbacks
    order.insert(0, order.pop(order.index(callback)))
    return callback
