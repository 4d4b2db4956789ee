"""The same training, captured live and traced by torch.profiler in one process: the import produces the same tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import training_programs

PROFILE_BEGIN = """
import joulemap as jm
profiler = torch.profiler.profile(
    activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True, record_shapes=True)
profiler.start()
"""
PROFILE_END = """
profiler.stop()
profiler.export_chrome_trace("trace.json")
jm.save_module_names(net, "modules.json")
"""


def make_profiled_program(network: str) -> str:
    """Batches are large: a pause of the process between the hooks of capture and of the profiler is short against them."""
    program = training_programs.make_training_program(network).replace("torch.randn(128,", "torch.randn(512,")
    program = program.replace("batch_size=32,", "batch_size=128,")
    assert "randn(512," in program and "batch_size=128," in program
    begin, end = "for epoch in range(epochs):", "if epochs >= 5:\n    print(time"
    return program.replace(begin, PROFILE_BEGIN + begin).replace(end, PROFILE_END + end)


class CapturedAndImported:
    """A program recorded with `record`, and its own trace imported."""

    def __init__(self, binaries: Path, folder: Path, program: str) -> None:
        self._joulemap, self._folder = binaries / "joulemap", folder
        (folder / "program.py").write_text(program)
        environment = {**os.environ, "PYTHONPATH": str(binaries.parent / "python"), "OMP_NUM_THREADS": "1"}
        self._run("record", "-o", "live.joule", "--trace", "full", "--", sys.executable, "program.py", env=environment)
        self._run("import", "kineto", "trace.json", "--modules", "modules.json", "-o", "imported.joule")

    def _run(self, *arguments: str, **options: object) -> str:
        command = [str(self._joulemap), *arguments]
        process = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=self._folder, **options)
        assert process.returncode == 0, process.stderr
        return process.stdout

    def rows(self, file: str, by: str) -> dict[tuple, dict]:
        report = json.loads(self._run("report", f"{file}.joule", "--json", "--by", by))
        return {tuple(row["path"]): row for row in report["rows"]}


@pytest.fixture(scope="module", params=["convnet", "transformer"])
def captured_and_imported(request, binaries: Path, tmp_path_factory) -> CapturedAndImported:
    return CapturedAndImported(binaries, tmp_path_factory.mktemp(request.param), make_profiled_program(request.param))


def rows_comparable_between_both(rows: dict[tuple, dict]) -> dict[tuple, dict]:
    """Rows within phases. Live capture has time between phases only from the first backward pass on: not compared."""
    phases = {"forward", "backward", "recompute", "optimizer", "zero_grad"}
    return {path: row for path, row in rows.items() if path[0] == "train" and len(path) > 1 and path[1] in phases}


def test_layers_are_the_same_and_are_called_as_often(captured_and_imported):
    live, imported_rows = (
        rows_comparable_between_both(captured_and_imported.rows(file, "layer")) for file in ("live", "imported")
    )
    assert set(live) == set(imported_rows)
    layers = [path for path in live if len(path) > 2]
    assert len(layers) > 20
    assert {path: live[path]["count"] for path in layers} == {path: imported_rows[path]["count"] for path in layers}


def test_times_of_phases_are_the_same(captured_and_imported):
    """Both clocks ran in the same process, so both contain other load, except for what falls between two hooks."""
    live, imported_rows = (captured_and_imported.rows(file, "phase") for file in ("live", "imported"))
    for phase in ("forward", "backward"):
        result = imported_rows[("train", phase)]["time_s"]
        assert result == pytest.approx(live[("train", phase)]["time_s"], rel=0.35), phase


def test_operations_of_backward_passes_have_the_same_names_and_calls(captured_and_imported):
    def operations(file: str) -> dict[tuple, int]:
        rows = {
            path: row
            for path, row in captured_and_imported.rows(file, "op").items()
            if path[:2] == ("train", "backward")
        }
        return {path: row["count"] for path, row in rows.items() if path[-1].endswith("Backward0")}

    live, imported_counts = operations("live"), operations("imported")
    # Live capture counts adjacent equal nodes (q, k and v of an attention) once. It does not see the nodes of a
    # backward pass within another one (checkpointing with use_reentrant).
    assert live and set(live) <= set(imported_counts)
    assert all(live[path] <= imported_counts[path] for path in live)
    assert sum(live[path] == imported_counts[path] for path in live) > 0.9 * len(live)


def test_numbers_of_modules_count_first_calls(binaries, tmp_path):
    """A model that calls its layers in a different order than it registers them."""
    program = """
import torch, torch.nn as nn, joulemap as jm
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.last, self.first = nn.Linear(4, 4), nn.Linear(4, 4)
        self.held = nn.ModuleList([nn.Linear(4, 4)])
    def forward(self, x):
        return self.last(self.held[0](self.first(x)))
net = Net()
profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True)
with profiler:
    net(torch.randn(2, 4))
profiler.export_chrome_trace("trace.json")
jm.save_module_names(net, "modules.json", torch.randn(2, 4))
assert jm.module_names(net) == {"Net": ["Net"], "Linear": ["last", "first", "held.0"]}
"""
    result = CapturedAndImported(binaries, tmp_path, program)
    assert json.loads((tmp_path / "modules.json").read_text()) == {
        "Net": ["Net"],
        "Linear": ["first", "held.0", "last"],
    }
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    calls = sorted((e["ts"], e["name"]) for e in events if e["name"].startswith("nn.Module: Linear"))
    assert [name for _, name in calls] == [f"nn.Module: Linear_{k}" for k in range(3)]
    layers = [path for path in result.rows("imported", "layer") if path[:2] == ("inference", "forward")]
    assert {path[-1] for path in layers} == {"Net", "first", "held.0", "last"}
