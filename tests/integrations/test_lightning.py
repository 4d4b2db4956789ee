"""joulemap.lightning in a real Trainer."""

from __future__ import annotations

import csv
import json

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

import joulemap.lightning


class Model(lightning.LightningModule):
    def __init__(self, failing_step: int = -1) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.failing_step = failing_step

    def training_step(self, batch, batch_idx):
        if self.global_step == self.failing_step:
            raise ValueError("of the program's")
        return (self.layer(batch[0]) - batch[0][:, :1]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(folder, callback, model=None, epochs: int = 2, resume=None, **options):
    torch.manual_seed(0)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 8)), batch_size=8)
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=CSVLogger(folder), callbacks=callback, log_every_n_steps=1,
        enable_progress_bar=False, enable_model_summary=False, **{"enable_checkpointing": False, **options},
    )  # fmt: skip
    model = model or Model()
    trainer.fit(model, data, ckpt_path=resume)
    return model


def rows(folder) -> list:
    with open(next(folder.rglob("metrics.csv")), newline="") as file:
        return list(csv.DictReader(file))


def test_the_trainers_logger_gets_steps_epochs_and_the_training(tmp_path):
    energy = joulemap.lightning.EnergyCallback()
    fit(tmp_path, [energy])
    result = rows(tmp_path)
    steps = {
        int(row["step"]): float(row["energy/step_estimated_j"]) for row in result if row["energy/step_estimated_j"]
    }
    assert sorted(steps) == list(range(8))
    epochs = [float(row["energy/epoch_estimated_j"]) for row in result if row["energy/epoch_estimated_j"]]
    assert len(epochs) == 2
    trained = [float(row["energy/train_estimated_j"]) for row in result if row["energy/train_estimated_j"]]
    assert trained == [pytest.approx(energy.energy.joules)]
    assert sum(steps.values()) <= sum(epochs) * 1.01 <= trained[0] * 1.02


def test_a_model_trains_identically_with_and_without_the_callback(tmp_path):
    torch.manual_seed(0)
    model_with_callback = fit(tmp_path / "a", [joulemap.lightning.EnergyCallback()], Model())
    torch.manual_seed(0)
    model_without_callback = fit(tmp_path / "b", [], Model())
    assert torch.equal(model_with_callback.layer.weight, model_without_callback.layer.weight)


def test_a_run_that_fails_counts(tmp_path):
    path = tmp_path / "total.json"
    with pytest.raises(ValueError, match="of the program's"):
        fit(tmp_path / "a", [joulemap.lightning.EnergyCallback(total_file=path)], Model(failing_step=3))
    fit(tmp_path / "b", [joulemap.lightning.EnergyCallback(total_file=path)])
    runs = json.loads(path.read_text())["runs"]
    assert [run["state"] for run in runs] == ["failed", "ended"]
    results = [
        float(row["energy/all_runs_estimated_j"]) for row in rows(tmp_path / "b") if row["energy/all_runs_estimated_j"]
    ]
    assert results[-1] == pytest.approx(sum(run["estimated_j"] for run in runs))


def test_a_training_resumed_from_a_checkpoint_after_a_failure_has_one_total(tmp_path):
    path = tmp_path / "total.json"
    checkpoint_callback = ModelCheckpoint(dirpath=tmp_path / "saved", every_n_epochs=1, save_last=True)
    first_run_callbacks = [joulemap.lightning.EnergyCallback(total_file=path), checkpoint_callback]
    with pytest.raises(ValueError, match="of the program's"):
        fit(tmp_path / "a", first_run_callbacks, Model(failing_step=6), epochs=3, enable_checkpointing=True)
    resumed_run_callbacks = [joulemap.lightning.EnergyCallback(total_file=path)]
    resumed = fit(tmp_path / "b", resumed_run_callbacks, epochs=3, resume=tmp_path / "saved" / "last.ckpt")
    assert resumed.trainer.global_step == 12
    runs = json.loads(path.read_text())["runs"]
    assert [run["state"] for run in runs] == ["failed", "ended"]
    result = rows(tmp_path / "b")
    steps = sorted(int(row["step"]) for row in result if row["energy/step_estimated_j"])
    assert steps == list(range(4, 12))  # continues from the checkpoint
    final_total_j = [float(row["energy/all_runs_estimated_j"]) for row in result if row["energy/all_runs_estimated_j"]][
        -1
    ]
    assert final_total_j == pytest.approx(sum(run["estimated_j"] for run in runs))


def test_the_callback_predicts_the_whole_training(tmp_path):
    energy = joulemap.lightning.EnergyCallback()
    fit(tmp_path, [energy])
    total = energy.forecast.total()
    assert total.done == total.steps == 8
    assert total.provenance == "estimated" and 0 < total.energy_j <= energy.energy.joules * 1.01


class Validated(Model):
    """Logs a validation loss that saturates: 1 + 1 / epoch."""

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", 1 + 1 / (1 + self.current_epoch))


def fit_until_stop(folder, callback):
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 8)), batch_size=8)
    trainer = lightning.Trainer(
        max_epochs=30, accelerator="cpu", logger=False, callbacks=[callback], enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, default_root_dir=folder,
    )  # fmt: skip
    trainer.fit(Validated(), data, data)
    return trainer.current_epoch


def test_training_stops_when_the_validation_loss_costs_too_much(tmp_path):
    stops = joulemap.lightning.EarlyStopCallback(joules_per_loss=1e-9, confirmations=1)
    assert fit_until_stop(tmp_path, stops) == 7  # the sanity check is no evaluation; one of warm-up, then six
    assert stops.stop.stopped and "the limit is" in stops.stop.reason
    pays = joulemap.lightning.EarlyStopCallback(joules_per_loss=1e12)
    assert fit_until_stop(tmp_path, pays) == 30
    with pytest.raises(joulemap.JoulemapError, match="logs no accuracy.*val_loss"):
        fit_until_stop(tmp_path, joulemap.lightning.EarlyStopCallback(1, monitor="accuracy"))
