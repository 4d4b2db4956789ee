# SPDX-License-Identifier: Apache-2.0
"""Energy in the Trainer of Hugging Face's transformers:

    import joulemap.huggingface
    trainer = transformers.Trainer(...)
    joulemap.huggingface.add_to(trainer)
    trainer.train()

All logs of the trainer (trainer_state.json, TensorBoard, W&B, MLflow ...) then contain more values.
"energy/train_j" is the energy of the training so far, "energy/epoch_j" that of the last epoch, "energy/forecast_j" the
prediction for the whole training (jm.predict_total). They are named "..._estimated_j" if nothing can be measured.
"""

from __future__ import annotations

from typing import Any, Optional

from transformers import TrainerCallback

from ._early_stop import EarlyStop, broadcast_decision_of_rank_0
from ._energy import Energy
from ._forecast import Forecast
from ._library import JoulemapError
from ._training_meter import TrainingMeter, energy_metrics, forecast_metrics, total_metrics


class EnergyCallback(TrainerCallback):
    """Adds energies to the logs. Use add_to(): passed to Trainer(callbacks=[...]), the callback runs after the
    callbacks that report logs (TensorBoard, W&B ...), which then miss its values. `total_file`: a JSON file, created
    if missing, that sums the energy of resumed and failed runs; a run that raised an exception stays "running" in it."""

    def __init__(self, total_file: Any = None) -> None:
        self._meter = TrainingMeter(total_file)
        self._last_epoch: Optional[Energy] = None
        self.epochs: list = []  # Energy of each epoch
        self.energy: Optional[Energy] = None  # energy of the training, set at its end

    @property
    def forecast(self) -> Optional[Forecast]:
        """The running prediction of the whole training: `forecast.total()`. None if the number of steps is unknown."""
        return self._meter.forecast

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._meter.begin()
        self._meter.begin_forecast(state.max_steps - state.global_step, **_recurring_work(args, state))

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._meter.mark_step()

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
        metrics = {**energy_metrics("train", energy), **total_metrics(self._meter.total), **forecast_metrics(self.forecast)}
        if self._last_epoch is not None:
            metrics.update(energy_metrics("epoch", self._last_epoch))
            self._last_epoch = None
        logs.update(metrics)
        if state.log_history:  # its last entry is a copy of the logs that was made before this callback
            state.log_history[-1].update(metrics)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.energy = self._meter.end()


def _recurring_work(args: Any, state: Any) -> dict:
    """Options of predict_total: the periods of evaluations and checkpoints, where the arguments of the trainer fix them.
    In a resumed training they are found from pauses."""
    if state.global_step:
        return {}
    steps_per_epoch = round(state.max_steps / max(1, state.num_train_epochs))
    strategy_by_name = {
        "evaluation": (args.eval_strategy, state.eval_steps),
        "checkpoint": (args.save_strategy, state.save_steps),
    }
    period_by_name = {}
    for name, (strategy, steps) in strategy_by_name.items():
        strategy_kind = getattr(strategy, "value", strategy)
        if strategy_kind == "steps" and steps:
            period_by_name[name] = int(steps)
        elif strategy_kind == "epoch":
            period_by_name[name] = steps_per_epoch
    return {"every": period_by_name}


def add_to(trainer: Any, total_file: Any = None) -> EnergyCallback:
    """Adds a callback before all others of the trainer, so that they receive its values."""
    callback = EnergyCallback(total_file)
    trainer.add_callback(callback)
    callbacks = trainer.callback_handler.callbacks
    callbacks.insert(0, callbacks.pop(callbacks.index(callback)))
    return callback


class EarlyStopCallback(TrainerCallback):
    """Stops the training when a further unit of loss costs more than `joules_per_loss` joules (jm.EarlyStop). `monitor`:
    name of the loss in the metrics of evaluations. `options`: those of jm.EarlyStop. With several ranks, rank 0 decides."""

    def __init__(self, joules_per_loss: float, monitor: str = "eval_loss", **options: Any) -> None:
        self.stop = EarlyStop(joules_per_loss, **options)  # its `reason` is the last decision, in words
        self._monitor = monitor

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.stop.begin()

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        if self._monitor not in (metrics or {}):
            raise JoulemapError(f"the evaluation has no {self._monitor}: monitor= must be one of {sorted(metrics or {})}")
        if broadcast_decision_of_rank_0(self.stop.update(metrics[self._monitor])):
            control.should_training_stop = True
