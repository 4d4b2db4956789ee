# SPDX-License-Identifier: Apache-2.0
"""Imports new traces of the frameworks' own profilers and checks their reports."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
NANOSECONDS_PER_SECOND = 1_000_000_000


def run(program: str, *arguments: object) -> str:
    """Runs one of the test programs without a recorder; returns the last line it prints."""
    command = [sys.executable, str(PROGRAMS / program), *map(str, arguments)]
    completed_process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert completed_process.returncode == 0, completed_process.stderr
    return completed_process.stdout.rstrip("\n").split("\n")[-1]


class ImportedTrace:
    """An imported trace, and its reports by level."""

    def __init__(self, joulemap, file: Path) -> None:
        self._joulemap = joulemap
        self._file = file

    def report(self, by: str) -> dict:
        report = self._joulemap("report", self._file, "--by", by, "--json")
        assert report.code == 0, report.err
        return report.json

    def paths(self, by: str = "layer") -> set:
        return {tuple(row["path"]) for row in self.report(by)["rows"]}

    def time_s(self, *start: str) -> float:
        return sum(row["time_s"] for row in self.report("layer")["rows"] if tuple(row["path"][: len(start)]) == start)


@pytest.fixture
def imported(joulemap, tmp_path):
    def import_trace(form: str, path: object) -> ImportedTrace:
        file = tmp_path / f"{form}.joule"
        outcome = joulemap("import", form, path, "-o", file)
        if outcome.code == 2 and "import" in outcome.err and not file.exists():
            pytest.skip("this build has no import command")
        assert outcome.code == 0, outcome.err
        return ImportedTrace(joulemap, file)

    return import_trace


def layer_names(paths: set, *start: str) -> set:
    return {path[len(start)] for path in paths if path[: len(start)] == start and len(path) > len(start)}


def test_a_profile_of_keras_has_its_layers(imported, tmp_path):
    run("traced_keras.py", tmp_path / "log")
    trace = imported("xplane", tmp_path / "log")
    for phase in ("forward", "backward"):
        # TensorFlow renumbers the scopes of layers each time it traces.
        layers = {layer.rstrip("_0123456789") for layer in layer_names(trace.paths(), "train", phase)}
        assert {"conv2d", "dense"} <= layers, phase
    assert trace.time_s("train", "forward") > 0 and trace.time_s("train", "backward") > 0
    assert len(trace.report("step")["rows"]) == 5, "each call of Keras's training function is a step"
    assert all("/" in row["name"] for row in trace.report("tensor")["rows"] if row["path"][1] == "backward")


@pytest.mark.parametrize("which", ["timeline.json", "metadata.pb"])
def test_a_trace_of_tensorflow_1_has_its_layers(imported, tmp_path, which):
    run("traced_tensorflow1.py", tmp_path / "timeline.json", tmp_path / "metadata.pb")
    paths = imported("tensorflow", tmp_path / which).paths()
    for phase in ("forward", "backward", "optimizer"):
        assert {"first", "second"} <= layer_names(paths, "train", phase), phase


def test_both_traces_of_tensorflow_1_give_the_same_result(imported, tmp_path):
    run("traced_tensorflow1.py", tmp_path / "timeline.json", tmp_path / "metadata.pb")
    timeline_trace = imported("tensorflow", tmp_path / "timeline.json")
    paths, time_s = timeline_trace.paths("op"), timeline_trace.time_s()
    run_metadata_trace = imported("tensorflow", tmp_path / "metadata.pb")
    assert run_metadata_trace.paths("op") == paths
    assert run_metadata_trace.time_s() == pytest.approx(time_s, rel=0.05)
    assert len(run_metadata_trace.report("step")["rows"]) == 1
    tensors = {row["name"] for row in run_metadata_trace.report("tensor")["rows"]}
    assert any(name.endswith("gradients/net/second/MatMul_grad/MatMul_1 [256,512] [256,10]") for name in tensors), (
        tensors
    )


def test_a_profile_of_jax_has_its_layers_and_steps(imported, tmp_path):
    run("traced_jax.py", tmp_path / "log")
    trace = imported("xplane", tmp_path / "log")
    paths = trace.paths()
    assert {"Conv_0", "hidden", "head"} <= layer_names(paths, "train", "forward")
    assert {"Conv_0", "hidden", "head"} <= layer_names(paths, "train", "backward")
    assert "sgd" in layer_names(paths, "train", "optimizer")
    assert len(trace.report("step")["rows"]) == 5


def test_a_profile_of_onnx_runtime_has_its_nodes_and_runs(imported, tmp_path):
    trace = imported("onnxruntime", run("traced_onnx.py", tmp_path))
    assert layer_names(trace.paths(), "inference", "forward") == {"layers.0.fc", "layers.0.act", "layers.1.fc"}
    assert len(trace.report("step")["rows"]) == 4


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_a_trace_of_pytorch_has_its_phases_and_steps(imported, tmp_path):
    run("traced_torch.py", tmp_path / "trace.json")
    trace = imported("kineto", tmp_path / "trace.json")
    phases = layer_names(trace.paths("phase"), "train")
    assert {"forward", "backward", "optimizer"} <= phases
    assert len(trace.report("step")["rows"]) == 3


def test_trace_times_are_wall_clock_times(tmp_path, binaries):
    begin_unix_s = time.time()
    run("traced_keras.py", tmp_path / "log")
    summary = subprocess.run(
        [binaries / "trace_summary", "xplane", tmp_path / "log"], capture_output=True, text=True, timeout=60, check=True
    )
    result = json.loads(summary.stdout)
    assert result["unix_time"] and result["events_dropped"] == 0
    assert begin_unix_s < result["first_ns"] / NANOSECONDS_PER_SECOND < time.time()
