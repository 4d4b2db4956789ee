"""diff: what changed between two recordings, and which changes fail a build."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import pytest
from support.kineto_trace import begin_ns, training

RECORDING = Path(__file__).resolve().parents[2] / "examples" / "resnet50-h200.joule"


@pytest.fixture
def recording(joulemap, tmp_path: Path):
    """recording(watts): the same traced training run of 8 steps, at constant power."""

    def make(watts: float, domain: str = "gpu0") -> Path:
        rows = [f"{begin_ns() + i * 10_000_000},{domain},power_w,{watts}" for i in range(-100, 500)]
        power = tmp_path / f"{watts}.csv"
        power.write_text("\n".join(["time_unix_ns,domain,kind,value", *rows]) + "\n")
        file = tmp_path / f"{watts}-{domain}.joule"
        trace = training(steps=8).write(tmp_path / "trace.json")
        outcome = joulemap("import", "kineto", trace, "--power", power, "-o", file)
        assert outcome.code == 0, outcome.err
        return file

    return make


STEPS, STEP_S = 60, 0.05


@pytest.fixture
def record_run(joulemap, tmp_path: Path):
    """run_of(watts, warm_up_watts): a traced training run of 60 steps at `watts`, the first six at `warm_up_watts`."""
    count = itertools.count()

    def make(watts: float, warm_up_watts: float | None = None) -> Path:
        number = next(count)

        def power_w(at_s: float) -> float:
            return warm_up_watts if warm_up_watts is not None and at_s < 6 * STEP_S else watts

        moments = range(-50, int(100 * STEPS * STEP_S) + 50)
        rows = [f"{begin_ns() + i * 10_000_000},gpu0,power_w,{power_w(i / 100)}" for i in moments]
        power = tmp_path / f"{number}.csv"
        power.write_text("\n".join(["time_unix_ns,domain,kind,value", *rows]) + "\n")
        file = tmp_path / f"{number}.joule"
        trace = training(steps=STEPS, step_us=1e6 * STEP_S).write(tmp_path / f"{number}.json")
        outcome = joulemap("import", "kineto", trace, "--power", power, "-o", file)
        assert outcome.code == 0, outcome.err
        return file

    return make


def test_warm_up_is_excluded_and_reported_as_excluded(joulemap, record_run):
    steady_recording, slow_start_recording = record_run(300.0), record_run(300.0, warm_up_watts=900.0)
    diff_outcome = joulemap("diff", steady_recording, slow_start_recording, "--json", "--fail-over", "0%")
    assert diff_outcome.code == 0 and diff_outcome.json["state"] == "steady"
    assert diff_outcome.json["total"]["verdict"] == "within_noise"
    assert diff_outcome.json["total"]["relative"] == pytest.approx(0, abs=0.01)
    left_out = diff_outcome.json["b"]["recordings"][0]["left_out"]
    assert left_out["warm_up_steps"] >= 6 and left_out["energy_j"] > 6 * STEP_S * 800
    assert {entry["verdict"] for entry in diff_outcome.json["entries"]} == {"within_noise"}
    text = joulemap("diff", steady_recording, slow_start_recording).out
    assert "steady state" in text and "Excluded from B" in text and "smallest detectable change" in text


def test_diff_compares_whole_runs_on_request(joulemap, record_run):
    steady_recording, slow_start_recording = record_run(300.0), record_run(300.0, warm_up_watts=900.0)
    diff_report = joulemap("diff", steady_recording, slow_start_recording, "--whole-run", "--json").json
    assert diff_report["state"] == "whole_run" and diff_report["total"]["verdict"] == "grew"
    assert diff_report["b"]["recordings"][0]["left_out"] is None


def test_run_to_run_variation_of_one_program_is_not_a_change(joulemap, record_run):
    diff_report = joulemap("diff", record_run(300.0), record_run(292.0), "--json").json
    assert diff_report["total"]["verdict"] == "within_noise", "2.7 % between two runs on an H200"
    assert diff_report["smallest_change"] > 0.05
    variation = diff_report["run_variation"]
    assert variation["prior_sd"] == 0.02 and variation["prior_is_given"] is False
    small_sd_diff = joulemap("diff", record_run(300.0), record_run(292.0), "--run-sd", "0.1%", "--json").json
    assert small_sd_diff["total"]["verdict"] == "shrank" and small_sd_diff["run_variation"]["prior_is_given"] is True


def test_several_recordings_of_each_establish_a_smaller_change(joulemap, record_run):
    baseline_recordings = [record_run(watts) for watts in (299.0, 300.0, 301.0)]
    changed_recordings = [record_run(watts) for watts in (314.0, 315.0, 316.0)]
    assert (
        joulemap("diff", baseline_recordings[1], changed_recordings[1], "--json").json["total"]["verdict"]
        == "within_noise"
    )
    diff_outcome = joulemap(
        "diff", *changed_recordings, "--json", "--fail-over", "3%", "--baseline", *baseline_recordings
    )
    assert diff_outcome.code == 1 and diff_outcome.json["failed"]
    assert diff_outcome.json["total"]["verdict"] == "grew"
    assert diff_outcome.json["total"]["relative"] == pytest.approx(0.05, abs=0.005)
    assert [len(diff_outcome.json[side]["recordings"]) for side in "ab"] == [3, 3]
    assert diff_outcome.json["a"]["inputs"] == [str(file) for file in baseline_recordings]
    assert diff_outcome.json["smallest_change"] < 0.05
    assert "3 recordings" in joulemap("diff", *changed_recordings, "--baseline", *baseline_recordings).out


def test_a_gate_below_the_detectable_change_reports_it(joulemap, record_run):
    diff_outcome = joulemap("diff", record_run(300.0), record_run(300.0), "--fail-over", "1%", "--json")
    assert diff_outcome.code == 0
    assert "gate_below_noise" in {note["code"] for note in diff_outcome.json["diagnostics"]}


def test_recordings_with_few_steps_are_compared_as_a_whole_and_report_it(joulemap, recording):
    diff_report = joulemap("diff", recording(300.0), recording(300.0), "--json").json
    assert diff_report["state"] == "whole_run"
    assert "no_steady_state" in {note["code"] for note in diff_report["diagnostics"]}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_diff_of_more_or_fewer_than_two_needs_a_baseline(joulemap, count):
    outcome = joulemap("diff", *[RECORDING] * count)
    assert outcome.code == 2 and "--baseline" in outcome.err


def test_diff_requires_the_baseline_option_last(joulemap):
    outcome = joulemap("diff", "--baseline", RECORDING, RECORDING)
    assert outcome.code == 2 and "put --baseline last" in outcome.err


def test_a_run_against_itself_is_all_noise(joulemap):
    outcome = joulemap("diff", RECORDING, RECORDING, "--json", "--fail-over", "0%")
    result = outcome.json
    assert outcome.code == 0
    assert result["schema"] == "joulemap.diff/1" and result["per"] == "step" and result["by"] == "layer"
    assert (
        result["total"]["verdict"] == "within_noise" and result["total"]["difference_j"] == 0 and not result["failed"]
    )
    assert {entry["verdict"] for entry in result["entries"]} == {"within_noise"}
    assert all(entry["path"] != ["probe"] for entry in result["entries"]), "probing is no part of the run"


def test_diff_fails_when_the_total_grew_by_more_than_allowed(joulemap, recording):
    little, much = recording(300.0), recording(450.0)
    assert joulemap("diff", little, much).code == 0, "nobody asked"
    diff_outcome = joulemap("diff", little, much, "--fail-over", "20%", "--json")
    assert diff_outcome.code == 1 and diff_outcome.json["failed"]
    assert diff_outcome.json["total"]["relative"] == pytest.approx(0.5, rel=0.02)
    assert joulemap("diff", little, much, "--fail-over", "60%").code == 0
    assert joulemap("diff", much, little, "--fail-over", "1%").code == 0, "it shrank"
    assert "Failed" in joulemap("diff", little, much, "--fail-over", "0.2").out


def test_entries_in_only_one_recording_are_new_or_gone(joulemap, recording):
    result = joulemap("diff", recording(300.0), RECORDING, "--per", "run", "--json").json
    assert {"new", "gone"} <= {entry["verdict"] for entry in result["entries"]}


def test_runs_without_a_domain_in_common_do_not_compare(joulemap, recording):
    outcome = joulemap("diff", recording(300.0), recording(300.0, domain="gpu1"))
    assert outcome.code == 77 and "->" in outcome.err


@pytest.mark.parametrize("share", ["five", "-5%", "%"])
@pytest.mark.parametrize("option", ["--fail-over", "--run-sd"])
def test_diff_rejects_invalid_percentages(joulemap, option, share):
    assert joulemap("diff", RECORDING, RECORDING, f"{option}={share}").code == 2


def test_a_file_that_is_not_there_is_named(joulemap, tmp_path):
    outcome = joulemap("diff", RECORDING, tmp_path / "nothing.joule")
    assert outcome.code == 1 and "nothing.joule" in outcome.err


TRAINING_ON_A_CPU = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(64, 64)
for step in range(60):
    optimizer.zero_grad()
    net(x).sum().backward()
    optimizer.step()
"""


def test_the_total_of_an_estimate_is_that_of_the_command_at_every_level(joulemap, binaries, tmp_path):
    pytest.importorskip("torch")
    environment = {**os.environ, "PYTHONPATH": str(binaries.parent / "python")}
    file = tmp_path / "run.joule"
    record_outcome = joulemap(
        "record", "--sensors", "estimate", "-o", file, "--", sys.executable, "-c", TRAINING_ON_A_CPU, env=environment
    )
    assert record_outcome.code == 0, record_outcome.err
    by_layer = joulemap("diff", file, file, "--json").json["total"]["a"]["energy_j"]
    for level in ("domain", "phase", "module", "op", "function", "kernel"):
        diff_report = joulemap("diff", file, file, "--by", level, "--json").json
        assert diff_report["total"]["a"]["energy_j"] == pytest.approx(by_layer, rel=1e-9), level
        assert diff_report["total"]["verdict"] == "within_noise"
    run = joulemap("report", file, "--by", "phase", "--json").json
    background_j = sum(row["energy_j"] for row in run["rows"] if row["path"] == ["background"])
    exclusion_summary = diff_report["a"]["recordings"][0]["left_out"]
    kept_j = by_layer * (diff_report["a"]["units"] + exclusion_summary["long_steps"])
    command_j = run["attributed_j"] + run["idle_j"] + run["unattributed_j"] - background_j
    assert exclusion_summary["energy_j"] + kept_j == pytest.approx(command_j, rel=1e-6)


def gpu_idle_j(diff: dict) -> float:
    return sum(entry["a_j"] for entry in diff["idle"] if entry["device"] == "gpu0")


def test_idle_energy_of_a_probed_recording_is_that_outside_probing(joulemap):
    whole = joulemap("diff", RECORDING, RECORDING, "--whole-run", "--json").json
    rows_j = sum(entry["a"]["energy_j"] for entry in whole["entries"])
    assert rows_j + gpu_idle_j(whole) == pytest.approx(whole["total"]["a"]["energy_j"], rel=1e-3)
    steady = joulemap("diff", RECORDING, RECORDING, "--json").json
    rows_j = sum(entry["a"]["energy_j"] for entry in steady["entries"])
    assert gpu_idle_j(steady) > 0
    assert rows_j + gpu_idle_j(steady) == pytest.approx(steady["total"]["a"]["energy_j"], rel=0.01)


def test_advice_and_diff_agree_on_the_energy_of_a_steady_step_of_a_probed_recording(joulemap):
    advice = joulemap("advise", RECORDING, "--json").json
    step_j = joulemap("diff", RECORDING, RECORDING, "--json").json["total"]["a"]["energy_j"]
    assert advice["energy_j"] / advice["part"]["steps"] == pytest.approx(step_j, rel=0.01)
