"""`report --by tensor` of PyTorch programs: operations with the shapes of their inputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(8, 3, 3, 3))
    def forward(self, x):
        large, small, again = F.conv2d(x, self.kernel), F.conv2d(x[:2, :, :8, :8], self.kernel), F.conv2d(x, self.kernel)
        return large.mean() + small.mean() + again.mean() + torch.cat([x[0], x[1]]).double().sum().float()
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    net(torch.randn(16, 3, 16, 16)).backward()
    optimizer.step()
"""


class RecordedReports:
    def __init__(self, joulemap: Path, folder: Path) -> None:
        self._joulemap, self._file = str(joulemap), str(folder / "run.joule")
        (folder / "program.py").write_text(PROGRAM)
        self._run("record", "-o", self._file, "--", sys.executable, str(folder / "program.py"))

    def _run(self, *arguments: str) -> str:
        process = subprocess.run([self._joulemap, *arguments], capture_output=True, text=True, timeout=240, check=False)
        assert process.returncode == 0, process.stderr
        return process.stdout

    def __call__(self, by: str) -> dict:
        return json.loads(self._run("report", self._file, "--json", "--by", by))

    def rows(self, by: str, phase: str) -> dict[str, dict]:
        return {row["path"][-1]: row for row in self(by)["rows"] if row["path"][:2] == ["train", phase]}


@pytest.fixture(scope="module")
def reports(tmp_path_factory, request) -> RecordedReports:
    binaries = request.getfixturevalue("binaries")
    return RecordedReports(binaries / "joulemap", tmp_path_factory.mktemp("tensors"))


def test_convolutions_of_different_shapes_are_rows_of_their_own_with_exact_counts(reports):
    forward = reports.rows("tensor", "forward")
    name = "torch.nn.functional.conv2d"
    counts = {text: row["count"] for text, row in forward.items() if text.startswith(name)}
    assert counts == {f"{name} [16,3,16,16] [8,3,3,3]": 12, f"{name} [2,3,8,8] [8,3,3,3]": 6}
    assert all(row["path"][2] == "Net" for row in forward.values())


def test_types_other_than_float32_and_lists_of_tensors_are_listed(reports):
    forward = reports.rows("tensor", "forward")
    assert forward["torch.cat [3,16,16] [3,16,16]"]["count"] == 6
    assert forward["torch.Tensor.sum float64[6,16,16]"]["count"] == 6


def test_backward_operations_have_the_shapes_of_their_gradients(reports):
    backward = reports.rows("tensor", "backward")
    counts = {text: row["count"] for text, row in backward.items() if text.startswith("ConvolutionBackward0")}
    assert counts == {"ConvolutionBackward0 [16,8,14,14]": 12, "ConvolutionBackward0 [2,8,6,6]": 6}


def test_report_by_op_ignores_shapes(reports):
    operations = reports.rows("op", "forward")
    assert operations["torch.nn.functional.conv2d"]["count"] == 18
    assert not any("[" in name for name in operations)
    tensors = [row for name, row in reports.rows("tensor", "forward").items() if "conv2d" in name]
    assert sum(row["time_s"] for row in tensors) == pytest.approx(operations["torch.nn.functional.conv2d"]["time_s"])


def test_rows_are_disjoint_and_add_up(reports):
    result = reports("tensor")
    assert len({(tuple(row["path"]), row["device"]) for row in result["rows"]}) == len(result["rows"])
    if result["attributed_j"] is not None:
        assert sum(row["energy_j"] or 0 for row in result["rows"]) == pytest.approx(result["attributed_j"], abs=1e-6)
    assert "shapes_unknown" not in {entry["code"] for entry in result["diagnostics"]}
