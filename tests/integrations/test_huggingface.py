"""joulemap.huggingface in a real Trainer of transformers, with a small randomly initialised model."""

from __future__ import annotations

import json

import pytest
import torch
import transformers

import joulemap.huggingface


class RecordingCallback(transformers.TrainerCallback):
    """Collects logs in place of a reporter."""

    def __init__(self) -> None:
        self.logs: list = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.logs.append(dict(logs))


def make_trainer(folder, save: str = "no", **options):
    transformers.set_seed(0)
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=2
    )
    data = [{"input_ids": torch.arange(8) + i, "labels": torch.tensor(i % 2)} for i in range(16)]
    arguments = transformers.TrainingArguments(
        str(folder), num_train_epochs=2, per_device_train_batch_size=4, logging_steps=2, save_strategy=save,
        report_to=[], use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config)
    return transformers.Trainer(model, arguments, train_dataset=data, **options)


def test_the_logs_of_the_trainer_contain_the_energy(tmp_path):
    recording_callback = RecordingCallback()
    trainer = make_trainer(tmp_path, callbacks=[recording_callback])
    energy = joulemap.huggingface.add_to(trainer)
    trainer.train()
    for logs in (recording_callback.logs, trainer.state.log_history):
        results = [entry["energy/train_estimated_j"] for entry in logs]
        assert len(results) >= 4
        assert results == sorted(results)  # cumulative energy never decreases
    assert len(energy.epochs) == 2
    assert any("energy/epoch_estimated_j" in entry for entry in trainer.state.log_history)
    assert energy.energy.provenance == "estimated"


def test_as_a_plain_callback_it_is_in_the_trainers_state(tmp_path):
    trainer = make_trainer(tmp_path, callbacks=[joulemap.huggingface.EnergyCallback()])
    trainer.train()
    assert all("energy/train_estimated_j" in entry for entry in trainer.state.log_history)


def test_a_model_trains_identically_with_and_without_the_callback(tmp_path):
    trainer_with_callback, trainer_without_callback = make_trainer(tmp_path / "a"), make_trainer(tmp_path / "b")
    joulemap.huggingface.add_to(trainer_with_callback)
    for trainer in (trainer_with_callback, trainer_without_callback):
        transformers.set_seed(0)
        trainer.train()
    pairs = zip(trainer_with_callback.model.parameters(), trainer_without_callback.model.parameters())
    assert all(
        torch.equal(parameter_with_callback, parameter_without_callback)
        for parameter_with_callback, parameter_without_callback in pairs
    )


class FailingCallback(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 6:
            raise ValueError("of the program's")


def test_a_training_resumed_from_a_checkpoint_after_a_failure_has_one_total(tmp_path):
    path = tmp_path / "total.json"
    failing_trainer = make_trainer(tmp_path / "run", save="epoch", callbacks=[FailingCallback()])
    joulemap.huggingface.add_to(failing_trainer, total_file=path)
    with pytest.raises(ValueError, match="of the program's"):
        failing_trainer.train()
    resumed_trainer = make_trainer(tmp_path / "run", save="epoch")
    joulemap.huggingface.add_to(resumed_trainer, total_file=path)
    resumed_trainer.train(resume_from_checkpoint=True)
    assert resumed_trainer.state.global_step == 8
    runs = json.loads(path.read_text())["runs"]
    assert len(runs) == 2 and all(run["estimated_j"] > 0 for run in runs)
    assert runs[1]["state"] == "ended"
    name = "energy/all_runs_estimated_j"
    results = [entry[name] for entry in resumed_trainer.state.log_history if name in entry]
    assert results[-1] == pytest.approx(sum(run["estimated_j"] for run in runs), rel=0.2)
    assert results[-1] > runs[1]["estimated_j"]


def test_the_callback_predicts_the_whole_training(tmp_path):
    trainer = make_trainer(tmp_path, save="epoch")
    energy = joulemap.huggingface.add_to(trainer)
    trainer.train()
    total = energy.forecast.total()
    assert total.done == total.steps == 8
    assert total.energy_j == pytest.approx(energy.energy.joules, rel=0.1)
    assert trainer.state.log_history[-1]["energy/forecast_estimated_j"] > 0


def test_training_stops_when_the_evaluation_loss_costs_too_much(tmp_path):
    trainer = make_trainer(tmp_path)
    trainer.args.num_train_epochs, trainer.args.eval_strategy = 12, transformers.IntervalStrategy.EPOCH
    trainer.eval_dataset = trainer.train_dataset
    stops = joulemap.huggingface.EarlyStopCallback(joules_per_loss=1e-9, confirmations=1)
    trainer.add_callback(stops)
    trainer.train()
    assert trainer.state.epoch == 7  # one of warm-up, then six
    assert stops.stop.stopped and "the limit is" in stops.stop.reason
