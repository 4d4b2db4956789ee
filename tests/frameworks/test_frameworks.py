# SPDX-License-Identifier: Apache-2.0
"""Records unmodified programs of real frameworks and checks the layers in their reports."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
NETWORKS = {
    "mlp": {"dense", "dense_1", "dense_2", "batch_normalization", "dropout"},
    "convnet": {"conv2d", "conv2d_1", "batch_normalization", "batch_normalization_1", "dense"},
    "transformer": {"multi_head_attention", "multi_head_attention.query", "layer_normalization_1", "dense", "dense_1"},
}


class Recorded:
    def __init__(self, last_output_line: str, report: dict) -> None:
        self.printed = last_output_line
        self.report = report
        self.paths = {tuple(row["path"]) for row in report["rows"]}

    def modules(self, *start: str) -> set:
        """The last elements of the paths that start with `start`."""
        return {path[-1] for path in self.paths if path[: len(start)] == start and len(path) > len(start)}

    def time_s(self, *start: str) -> float:
        return sum(row["time_s"] for row in self.report["rows"] if tuple(row["path"][: len(start)]) == start)

    def scoped_time_percent(self) -> float:
        """Percentage of the operations' time in profiled steps that has a layer and a phase."""
        messages = [
            result["message"] for result in self.report["diagnostics"] if result["code"] == "layers_from_profiler"
        ]
        return float(re.search(r"([\d.]+) % of its operation time", messages[0])[1])

    def codes(self) -> set:
        return {result["code"] for result in self.report["diagnostics"]}


def last_line(text: str) -> str:
    return text.rstrip("\n").split("\n")[-1]


@pytest.fixture
def recorded(joulemap, tmp_path):
    """Records one of the test programs and reads its report, by layer by default."""

    def record(program: str, *arguments: str, by: str = "layer") -> Recorded:
        file = tmp_path / "run.joule"
        run = joulemap("record", "-o", file, "--", sys.executable, PROGRAMS / program, *arguments)
        assert run.code == 0, run.err
        assert not Path(f"{file}.d").exists(), "parts or traces were left behind"
        report = joulemap("report", file, "--by", by, "--json")
        assert report.code == 0, report.err
        return Recorded(last_line(run.out), report.json)

    record.again = lambda report_level: joulemap("report", tmp_path / "run.joule", "--by", report_level, "--json").json[
        "rows"
    ]
    return record


def plain(program: str, *arguments: str) -> str:
    """What the program prints without a recorder."""
    command = [sys.executable, str(PROGRAMS / program), *map(str, arguments)]
    return last_line(subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout)


@pytest.mark.parametrize("network", NETWORKS)
def test_keras_operations_have_a_layer_and_a_phase(recorded, network):
    run = recorded("keras_networks.py", network)
    assert "capture_failed" not in run.codes()
    assert run.scoped_time_percent() >= 95
    assert NETWORKS[network] <= run.modules("train", "forward")
    assert NETWORKS[network] - {"dropout"} <= run.modules("train", "backward")
    assert run.modules("train", "optimizer") & NETWORKS[network], "updates are told by layer"
    assert run.time_s("train", "forward") > 0 and run.time_s("train", "backward") > 0


@pytest.mark.parametrize("network", NETWORKS)
def test_keras_trains_identically_with_the_capture(recorded, network):
    assert recorded("keras_networks.py", network).printed == plain("keras_networks.py", network)


def test_keras_evaluation_is_inference(recorded):
    run = recorded("keras_networks.py", "mlp", "--evaluate")
    assert NETWORKS["mlp"] - {"dropout"} <= run.modules("inference", "forward")
    assert not run.modules("inference", "backward")


def test_keras_compiled_by_xla_has_layers_too(recorded):
    run = recorded("keras_networks.py", "mlp", "--jit")
    assert run.scoped_time_percent() >= 95
    assert {"dense", "dense_1", "dropout"} <= run.modules("train", "forward")


def test_keras_steps_are_batches(recorded):
    run = recorded("keras_networks.py", "mlp", by="step")
    assert len(run.report["rows"]) == 60


@pytest.mark.parametrize("kind", ["function", "nested", "jit", "keras"])
def test_a_training_loop_of_tf_function_has_phases_layers_and_steps(recorded, kind):
    run = recorded("tensorflow_loops.py", kind)
    assert "capture_failed" not in run.codes()
    assert run.printed == plain("tensorflow_loops.py", kind)
    assert run.scoped_time_percent() >= (80 if kind == "jit" else 95)
    for phase in ("forward", "backward"):
        assert {"first", "second"} <= run.modules("train", phase), phase
    assert run.modules("train", "optimizer")
    if kind != "jit":  # XLA fuses the loss and the updates with other operations
        assert {"first", "second"} <= run.modules("train", "optimizer")
        assert "loss" in run.modules("train", "loss")
    # The first layer has 50 times the work of the second one.
    assert run.time_s("train", "forward", "first") > run.time_s("train", "forward", "second")
    assert len(recorded.again("step")) in range(38, 41)  # the first calls compile
    names = {row["name"] for row in recorded.again("tensor") if row["path"][:3] == ["train", "backward", "second"]}
    products = {
        name for name in names if "[512,512] [512,10]" in name or "[512,10] [512,10]" in name or "MatMul" in name
    }
    assert len(products) >= 2, "the two matrix products of a backward pass are two rows"
    assert any("[" in name for name in products)


def test_sessions_have_phases_layers_and_steps(recorded):
    run = recorded("tensorflow1_sessions.py")
    assert "capture_failed" not in run.codes()
    assert run.printed == plain("tensorflow1_sessions.py")
    for phase in ("forward", "backward", "optimizer"):
        assert {"first", "second"} <= run.modules("train", phase), phase
    assert {"first", "second"} <= run.modules("inference", "forward")
    assert not run.modules("inference", "backward")
    assert len(recorded.again("step")) in range(37, 41)


def test_steps_are_those_that_the_program_annotates(recorded):
    run = recorded("tensorflow_loops.py", "annotated", by="step")
    assert len(run.report["rows"]) == 40


def test_eager_training_has_phases_and_says_what_has_no_layers(recorded):
    run = recorded("tensorflow_loops.py", "eager")
    assert run.printed == plain("tensorflow_loops.py", "eager")
    assert {"first", "second"} <= run.modules("train", "forward")
    assert run.time_s("train", "backward") > 0 and run.time_s("train", "optimizer") > 0
    assert "eager_backward" in run.codes() and "capture_failed" not in run.codes()
    assert len(recorded.again("step")) in range(39, 41)


def test_jax_operations_have_a_layer_and_a_phase(recorded):
    run = recorded("flax_network.py")
    assert "capture_failed" not in run.codes()
    assert run.scoped_time_percent() >= 90
    assert {"Conv_0", "block_0.Dense_0", "block_1.Dense_1"} <= run.modules("train", "forward")
    assert {"Conv_0", "block_0.Dense_0", "block_1.Dense_1"} <= run.modules("train", "backward")
    assert any(module.startswith("block_1") for module in run.modules("train", "recompute"))
    assert "sgd" in run.modules("train", "optimizer")
    assert "Conv_0" in run.modules("inference", "forward")


def test_jax_trains_identically_with_the_capture(recorded):
    assert recorded("flax_network.py").printed == plain("flax_network.py")


@pytest.mark.parametrize("runs", ["2", "50"])
def test_onnx_nodes_are_layers(recorded, tmp_path, runs):
    run = recorded("onnx_network.py", tmp_path / "net.onnx", runs)
    assert "capture_failed" not in run.codes()
    layers = {f"layers.{i}.{part}" for i in range(3) for part in ("fc", "act")}
    assert run.modules("inference", "forward") == layers
    assert run.printed == plain("onnx_network.py", tmp_path / "net.onnx", runs)
