"""examples/experiments/frameworks: its PyTorch networks learn, and its tables compare frameworks. That the networks of all
frameworks agree is checked in tests/frameworks."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENT_FOLDER = Path(__file__).resolve().parents[2] / "examples" / "experiments" / "frameworks"
NETWORKS = ["resnet50", "ssd", "mask_rcnn", "ncf", "lstm_translator", "transformer_xl"]

# All networks in one process: importing PyTorch takes longer than these trainings.
TRAIN_NETWORKS = """
sys.path.insert(0, {folder!r})
import numpy as np
from networks_pytorch.trainer import Trainer
from quality import compute_quality
from sizes import SIZES
from synthetic_data import make_batches

results = {{}}
for network in {networks!r}:
    settings = SIZES[network]["small"] | {{"train_batches": 2}}
    train_batches, inference_batches = make_batches(network, settings)
    trainer = Trainer(network, settings, "cpu")
    inputs = [trainer.put(batch) for batch in train_batches]
    losses = [float(trainer.train_step(inputs[step % 2])) for step in range(20)]
    outputs = trainer.fetch([trainer.predict(trainer.put(batch)) for batch in inference_batches])
    results[network] = [losses[0], losses[-1], compute_quality(network, inference_batches, outputs)]
print(json.dumps(results))
"""


def test_networks_learn_and_answer(python):
    results = python(TRAIN_NETWORKS.format(folder=str(EXPERIMENT_FOLDER), networks=NETWORKS))
    for network, (first_loss, last_loss, quality) in results.items():
        assert last_loss < 0.95 * first_loss, network
        assert 0 <= quality <= 1, network


@pytest.mark.parametrize("plan, repetitions", [("cpu.toml", 10), ("h200.toml", 5)])
def test_plans_are_valid(joulemap, plan, repetitions):
    outcome = joulemap("experiment", "plan", EXPERIMENT_FOLDER / plan, "--top", "1")
    assert outcome.code == 0, outcome.err
    assert f": 18 cells, {repetitions} repetitions" in outcome.out


def write_csv(file: Path, rows: list[dict]) -> None:
    with file.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_the_table_relates_frameworks_to_pytorch(tmp_path):
    copy = tmp_path / "frameworks"
    (copy / "results").mkdir(parents=True)
    for name in ("README.md", "make_tables.py"):
        shutil.copy(EXPERIMENT_FOLDER / name, copy)
    shutil.copy(EXPERIMENT_FOLDER.parent / "result_tables.py", copy.parent)
    shared_metrics = {"final_loss": 0.25, "quality": 0.5, "startup_s": 3, "steps": 40}
    cells = []
    for framework, energy_j, target_reached_share in (("pytorch", 10, 1), ("jax", 5, 0)):
        means = shared_metrics | {"training_j": energy_j, "inference_j": energy_j / 2, "reached": target_reached_share}
        cells += [
            {"network": "ncf", "framework": framework, "metric": metric, "mean": mean} for metric, mean in means.items()
        ]
    write_csv(copy / "results" / "cpu-cells.csv", cells)
    write_csv(copy / "results" / "cpu-effects.csv", [{"verdict": "a verdict"}])
    for _ in range(2):  # writing the tables again changes nothing
        subprocess.run([sys.executable, copy / "make_tables.py"], check=True)
    page = (copy / "README.md").read_text()
    assert "| ncf | jax | 5 J (0.50 x) | not reached | 0.25 | 2.5 J (0.50 x) | 0.50 | 3 s |\n" in page
    assert page.count("- a verdict\n") == 1
