"""The networks of examples/experiments/frameworks are the same in PyTorch, TensorFlow and JAX: with the same weights and
data they have the same first losses. A later loss differs by rounding only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENT_FOLDER = Path(__file__).resolve().parents[2] / "examples" / "experiments" / "frameworks"
STEPS = 3

# Each framework in a process of its own, as in the experiment.
COMPUTE_LOSSES = f"""
import importlib, json, sys
sys.path.insert(0, {str(EXPERIMENT_FOLDER)!r})
from sizes import SIZES
from synthetic_data import make_batches

network, framework = sys.argv[1:]
settings = SIZES[network]["small"] | {{"train_batches": 1}}
train_batches, inference_batches = make_batches(network, settings)
trainer = importlib.import_module(f"networks_{{framework}}.trainer").Trainer(network, settings, "cpu")
batch = trainer.put(train_batches[0])
losses = [float(trainer.fetch(trainer.train_step(batch))) for _ in range({STEPS})]
trainer.fetch(trainer.predict(trainer.put(inference_batches[0])))
print(json.dumps([trainer.count_parameters(), *losses]))
"""


def compute_losses(network: str, framework: str) -> list[float]:
    command = [sys.executable, "-c", COMPUTE_LOSSES, network, framework]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("network", ["resnet50", "ssd", "mask_rcnn", "ncf", "lstm_translator", "transformer_xl"])
def test_networks_of_all_frameworks_agree(network):
    parameters, *losses = compute_losses(network, "pytorch")
    assert losses[-1] < losses[0]
    for framework in ("tensorflow", "jax"):
        other_parameters, *other_losses = compute_losses(network, framework)
        assert other_parameters == parameters, framework
        assert other_losses == pytest.approx(losses, rel=0.01), framework
        assert other_losses[0] == pytest.approx(losses[0], rel=1e-4), framework
