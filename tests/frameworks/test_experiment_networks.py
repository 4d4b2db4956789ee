"""The networks of examples/experiments/frameworks are the same in PyTorch, TensorFlow and JAX: with the same weights and
data they have the same losses, gradients that reduce them equally, and nearly the same outputs. The learning rate is small:
Adam moves each weight by the sign of its gradient, and rounding decides the signs of gradients near 0."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXPERIMENT_FOLDER = Path(__file__).resolve().parents[2] / "examples" / "experiments" / "frameworks"
STEPS = 3

# Each framework in a process of its own, as in the experiment.
TRAIN_AND_INFER = f"""
import importlib, sys
import numpy as np
sys.path.insert(0, {str(EXPERIMENT_FOLDER)!r})
from sizes import SIZES
from synthetic_data import make_batches

network, framework, file = sys.argv[1:]
settings = SIZES[network]["small"] | {{"train_batches": 1, "learning_rate": 1e-5}}
train_batches, inference_batches = make_batches(network, settings)
trainer = importlib.import_module(f"networks_{{framework}}.trainer").Trainer(network, settings, "cpu")
batch = trainer.put(train_batches[0])
losses = [float(trainer.fetch(trainer.train_step(batch))) for _ in range({STEPS})]
outputs = trainer.fetch(trainer.predict(trainer.put(inference_batches[0])))
np.savez(file, parameters=trainer.count_parameters(), losses=losses, **outputs)
"""


def train_and_infer(network: str, framework: str, folder: Path) -> dict[str, np.ndarray]:
    file = folder / f"{framework}.npz"
    command = [sys.executable, "-c", TRAIN_AND_INFER, network, framework, str(file)]
    completed_process = subprocess.run(command, capture_output=True, text=True)
    assert completed_process.returncode == 0, completed_process.stderr
    return dict(np.load(file))


def share_of_equal_entries(a: np.ndarray, b: np.ndarray) -> float:
    """Entries that differ by at most 5 % of the largest: classes, tokens and mask pixels must be equal."""
    assert a.shape == b.shape
    if a.dtype.kind != "f":
        return float((a == b).mean())
    return float((abs(a - b) <= 0.05 * abs(a).max()).mean())


@pytest.mark.parametrize("network", ["resnet50", "ssd", "mask_rcnn", "ncf", "lstm_translator", "transformer_xl"])
def test_networks_of_all_frameworks_agree(network, tmp_path):
    expected = train_and_infer(network, "pytorch", tmp_path)
    losses = expected.pop("losses")
    assert losses[-1] < losses[0]
    for framework in ("tensorflow", "jax"):
        framework_results = train_and_infer(network, framework, tmp_path)
        assert framework_results["losses"][0] == pytest.approx(losses[0], rel=1e-4), framework
        assert framework_results["losses"][0] - framework_results["losses"][-1] == pytest.approx(
            losses[0] - losses[-1], rel=0.1
        ), framework
        shares = {name: share_of_equal_entries(expected[name], framework_results[name]) for name in expected}
        assert min(shares.values()) >= 0.9, (framework, shares)
