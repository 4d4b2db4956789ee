"""joulemap.keras in a real fit()."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest

import joulemap.keras


def fit(*callbacks, epochs: int = 2, **options):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.layers.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(64, 8)).astype("float32")
    return model.fit(x, x[:, :1], batch_size=16, epochs=epochs, verbose=0, callbacks=list(callbacks), **options)


def test_the_energy_of_each_epoch_is_in_the_history():
    energy = joulemap.keras.EnergyCallback()
    history = fit(energy).history
    assert len(history["energy/epoch_estimated_j"]) == 2  # labelled as an estimate
    assert all(joules > 0 for joules in history["energy/epoch_estimated_j"])
    assert "energy/epoch_j" not in history
    assert energy.energy.joules >= sum(epoch.joules for epoch in energy.epochs) * 0.99


def test_each_batch_is_logged_on_request():
    energy = joulemap.keras.EnergyCallback(per_batch=True)
    fit(energy)
    assert [step.number for step in energy.batches] == [0, 1, 2, 3] * 2
    assert all(step.energy.joules is not None for step in energy.batches)


def test_later_loggers_receive_the_energy(tmp_path):
    fit(joulemap.keras.EnergyCallback(), keras.callbacks.CSVLogger(str(tmp_path / "log.csv")))
    assert "energy/epoch_estimated_j" in (tmp_path / "log.csv").read_text().splitlines()[0]


def test_a_model_trains_identically_with_and_without_the_callback():
    losses_with_callback = fit(joulemap.keras.EnergyCallback(per_batch=True)).history["loss"]
    assert losses_with_callback == fit().history["loss"]


class InterruptingCallback(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        raise KeyboardInterrupt


def test_runs_that_were_interrupted_and_resumed_have_one_total(tmp_path):
    path = tmp_path / "total.json"
    first_run_callback = joulemap.keras.EnergyCallback(total_file=path)
    with pytest.raises(KeyboardInterrupt):
        fit(first_run_callback, InterruptingCallback())
    second_run_callback = joulemap.keras.EnergyCallback(total_file=path)
    history = fit(second_run_callback).history
    runs = json.loads(path.read_text())["runs"]
    assert [run["state"] for run in runs] == ["running", "ended"]
    total = sum(run["estimated_j"] for run in runs)
    assert total > runs[1]["estimated_j"] > 0
    assert history["energy/all_runs_estimated_j"][-1] == pytest.approx(total, rel=0.5)


def test_the_callback_predicts_the_whole_training():
    energy = joulemap.keras.EnergyCallback()
    fit(energy)
    total = energy.forecast.total()
    assert total.done == total.steps == 8
    assert total.provenance == "estimated" and 0 < total.energy_j <= energy.energy.joules * 1.01


def test_training_stops_when_the_loss_costs_too_much():
    stops = joulemap.keras.EarlyStopCallback(joules_per_loss=1e-9, monitor="loss", confirmations=1)
    assert len(fit(stops, epochs=30).history["loss"]) == 7  # one of warm-up, then six
    assert stops.stop.stopped and "the limit is" in stops.stop.reason
    pays = joulemap.keras.EarlyStopCallback(joules_per_loss=1e12, monitor="loss")
    assert len(fit(pays, epochs=12).history["loss"]) == 12
    with pytest.raises(joulemap.JoulemapError, match="no val_loss.*loss"):
        fit(joulemap.keras.EarlyStopCallback(1))
