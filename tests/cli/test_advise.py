"""`joulemap advise`: findings with the joules that a change would save."""

from __future__ import annotations

import os
import sys

import pytest


@pytest.fixture
def environment(binaries):
    return {**os.environ, "PYTHONPATH": str(binaries.parent / "python")}


@pytest.fixture(scope="module")
def recording(sysroots):
    return sysroots.parent.parent / "examples" / "resnet50-h200.joule"


def test_a_training_in_nchw_is_told_to_use_channels_last(joulemap, recording):
    advice = joulemap("advise", recording, "--json").json
    assert advice["schema"] == "joulemap.advice/1"
    finding_by_rule = {finding["rule"]: finding for finding in advice["findings"]}
    layout = finding_by_rule["memory_layout"]
    assert "channels_last" in layout["change"]
    assert 0 < layout["low_j"] < layout["saves_j"] < layout["high_j"]
    assert 0.02 * advice["gpu_energy_j"] < layout["saves_j"] < 0.3 * advice["gpu_energy_j"]


def test_findings_come_with_their_largest_saving_first_and_fit_80_columns(joulemap, recording):
    advice = joulemap("advise", recording, "--json").json
    savings = [finding["saves_j"] for finding in advice["findings"]]
    assert savings == sorted(savings, reverse=True)
    text = joulemap("advise", recording).out
    assert all(len(line) <= 80 for line in text.split("\n"))
    assert "try: " in text
    assert "joulemap diff" in text


def test_the_energy_of_findings_is_that_of_the_report(joulemap, recording):
    advice = joulemap("advise", recording, "--json").json
    layout = next(finding for finding in advice["findings"] if finding["rule"] == "memory_layout")
    rows = joulemap("report", recording, "--by", "kernel", "--json").json["rows"]
    conversions = [row["energy_j"] for row in rows if "nchwToNhwc" in row["name"] or "nhwcToNchw" in row["name"]]
    assert layout["energy_j"] == pytest.approx(sum(conversions), rel=0.05)


def test_a_recording_without_layers_or_a_gpu_has_no_findings_and_says_why(joulemap, sysroots, tmp_path):
    file = tmp_path / "run.joule"
    joulemap("record", "--sysroot", sysroots / "intel-2socket", "-o", file, "--", "true")
    outcome = joulemap("advise", file)
    assert outcome.code == 0
    assert "need energy of a GPU" in outcome.out and "report --by function" in outcome.out
    result = joulemap("advise", file, "--json").json
    assert result["findings"] == []
    assert "advice_needs_gpu" in {entry["code"] for entry in result["diagnostics"]}


LOADING_PROGRAM = """
import torch
class Items(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, index):
        item = torch.full((400, 400), float(index))
        for _ in range(5):
            item = item.tanh()
        return item.mean()[None]
torch.set_num_threads(1)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for items in torch.utils.data.DataLoader(Items(), 4):
    model(items).sum().backward()
    optimizer.step()
"""


def test_a_training_on_a_cpu_has_findings_about_the_energy_of_the_program(joulemap, tmp_path, environment):
    (tmp_path / "train.py").write_text(LOADING_PROGRAM)
    program = [sys.executable, "train.py"]
    assert joulemap("record", "--sensors", "estimate", "--", *program, cwd=tmp_path, env=environment).code == 0
    advice = joulemap("advise", "--json", cwd=tmp_path).json
    assert (advice["processor"], advice["gpu_energy_j"]) == ("cpu", None)
    first_finding = advice["findings"][0]
    assert first_finding["rule"] == "data_loading"
    assert 0.5 * advice["energy_j"] < first_finding["energy_j"] <= advice["energy_j"]
    assert "tanh" in first_finding["evidence"][0]


def test_a_missing_recording_fails_with_a_remedy(joulemap, tmp_path):
    outcome = joulemap("advise", tmp_path / "none.joule")
    assert outcome.code == 1
    assert "->" in outcome.err
