"""joulemap.mlflow with its file store, joulemap.wandb offline, and %%joules in a real IPython."""

from __future__ import annotations

import json

import mlflow
import pytest
import wandb
from IPython.testing.globalipapp import start_ipython

import joulemap.mlflow
import joulemap.wandb


def work() -> int:
    return sum(i * i for i in range(20_000))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    mlflow.set_experiment("energy")
    return mlflow.start_run


def read_metric_history(run_id: str, name: str) -> list:
    return [(metric.step, metric.value) for metric in mlflow.MlflowClient().get_metric_history(run_id, name)]


def test_mlflow_gets_steps_epochs_and_the_run(run):
    with run() as active, joulemap.mlflow.EnergyLogger() as energy:
        for _ in range(2):
            energy.epoch()
            for _ in range(3):
                energy.step()
                work()
    result = read_metric_history(active.info.run_id, "energy/step_estimated_j")
    assert [step for step, _ in result] == [0, 1, 2, 3, 4, 5]
    assert len(read_metric_history(active.info.run_id, "energy/epoch_estimated_j")) == 2
    assert read_metric_history(active.info.run_id, "energy/train_estimated_j") == [
        (5, pytest.approx(energy.energy.joules))
    ]
    assert mlflow.get_run(active.info.run_id).data.tags["energy"] == "estimated"


def test_mlflow_gets_the_energy_of_a_run_that_fails(run, tmp_path):
    path = tmp_path / "total.json"
    with pytest.raises(ValueError), run() as active, joulemap.mlflow.EnergyLogger(path) as energy:
        energy.step()
        raise ValueError
    assert len(read_metric_history(active.info.run_id, "energy/train_estimated_j")) == 1
    assert json.loads(path.read_text())["runs"][0]["state"] == "failed"


def test_without_an_mlflow_run_the_error_states_it():
    with pytest.raises(joulemap.JoulemapError, match="start_run"):
        joulemap.mlflow.EnergyLogger().__enter__()


def test_wandb_gets_steps_and_a_summary_offline(tmp_path):
    run = wandb.init(mode="offline", dir=str(tmp_path), project="energy")
    logged: list = []
    log = run.log
    run.log = lambda result, **log_options: (
        logged.append(result),
        log(result, **log_options),
    )  # an offline run cannot be queried
    with joulemap.wandb.EnergyLogger(run) as energy:
        energy.epoch()
        for _ in range(3):
            energy.step()
            work()
    assert [result["energy/step"] for result in logged if "energy/step_estimated_j" in result] == [0, 1, 2]
    assert run.summary["energy/provenance"] == "estimated"
    assert run.summary["energy/train_estimated_j"] == pytest.approx(energy.energy.joules)
    run.finish()
    assert list(tmp_path.rglob("*.wandb"))


@pytest.fixture
def ipython_shell():
    interactive_shell = start_ipython() or __import__("IPython").get_ipython()
    interactive_shell.run_line_magic("load_ext", "joulemap")
    return interactive_shell


def test_a_cell_is_printed_and_stored(ipython_shell, capsys):
    ipython_shell.run_cell_magic("joules", "spent", "made_there = sum(range(100000))")
    assert "estimated" in capsys.readouterr().out
    assert ipython_shell.user_ns["spent"].joules > 0
    assert ipython_shell.user_ns["made_there"] == sum(range(100000))


def test_a_wrong_line_is_reported(ipython_shell, capsys):
    ipython_shell.run_line_magic("joules", "of_a_line = 7")
    assert " J " in capsys.readouterr().out
    assert ipython_shell.user_ns["of_a_line"] == 7
