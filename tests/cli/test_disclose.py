"""Disclosures of a part of a run or of the machine name what they leave out. Uses a real recording of an H200."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

EXAMPLE_RECORDING = Path(__file__).resolve().parents[2] / "examples" / "resnet50-h200.joule"
MODEL_OPTIONS = ("--model-name", "m", "--stage", "training", "--gco2-per-kwh", 100, "--embodied-kg", 1000)
FORMATS = ("huggingface", "boamps", "spdx3", "cyclonedx", "eu-ai-act")


@pytest.mark.parametrize("format", FORMATS)
def test_a_part_of_a_run_is_named_as_one(joulemap, format):
    partial_outcome = joulemap(
        "report", EXAMPLE_RECORDING, "--disclose", format, *MODEL_OPTIONS, "--time", "0,5", "--exclude", "cpu,ram"
    )
    assert partial_outcome.code == 0 and "only 5.00 s of the run" in partial_outcome.out, partial_outcome.err
    assert "not included: package-0, dram-0" in partial_outcome.out
    whole_run_outcome = joulemap("report", EXAMPLE_RECORDING, "--disclose", format, *MODEL_OPTIONS)
    assert whole_run_outcome.code == 0 and "of the run" not in whole_run_outcome.out


def test_the_model_card_and_the_citation_name_the_part(joulemap):
    for option in ("--model-card", "--cite"):
        partial_outcome = joulemap("report", EXAMPLE_RECORDING, option, "--time", "0,5", "--exclude", "gpu")
        assert "only 5.00 s of the run" in partial_outcome.out and "not included: gpu0" in partial_outcome.out, (
            partial_outcome.out
        )


def test_a_part_of_a_run_has_no_score_per_run(joulemap):
    outcome = joulemap("report", EXAMPLE_RECORDING, "--disclose", "sci", *MODEL_OPTIONS, "--time", "0,5")
    assert outcome.code == 2 and "--time" in outcome.err and outcome.out == ""
    outcome = joulemap("report", EXAMPLE_RECORDING, "--disclose", "sci", *MODEL_OPTIONS, "--exclude", "cpu,ram")
    assert all("not included: package-0, dram-0" in sentence for sentence in outcome.json["boundary"])


def test_excluded_domains_are_listed(joulemap):
    disclosure = joulemap("report", EXAMPLE_RECORDING, "--disclose", "eu-ai-act", "--exclude", "cpu,ram").json
    assert disclosure["not_included"] == ["package-0", "dram-0"] and len(disclosure["energy"]) == 1
    disclosure = joulemap("report", EXAMPLE_RECORDING, "--disclose", "eu-ai-act", "--exclude", "gpu").json
    assert disclosure["not_included"] == ["gpu0"] and "not included: gpu0" in disclosure["statement"]


def test_the_exclusion_of_everything_is_the_reason_for_an_unknown_energy(joulemap):
    for option in (("--disclose", "eu-ai-act"), ("--model-card",)):
        outcome = joulemap("report", EXAMPLE_RECORDING, *option, "--exclude", "cpu,ram,gpu")
        assert outcome.code == 2 and "excluded: gpu0" in outcome.err and "doctor" not in outcome.err, outcome.err


def test_boamps_adds_the_energy_of_the_run_to_the_measures_of_the_user(joulemap, tmp_path: Path):
    base = tmp_path / "base.json"
    codecarbon_measure = {"measurementMethod": "codecarbon", "powerConsumption": 0.5}
    for measures in ([codecarbon_measure], [], None):
        base.write_text(json.dumps({"task": {"taskStage": "", "dataset": {}}, "measures": measures}))
        outcome = joulemap("report", EXAMPLE_RECORDING, "--disclose", "boamps", *MODEL_OPTIONS, "--into", base)
        disclosure = outcome.json
        *user_measures, measured, estimated_measure = disclosure["measures"]
        assert user_measures == (measures or [])
        assert measured["powerConsumption"] == pytest.approx(7066 / 3.6e6, rel=1e-3)
        assert measured["measurementDuration"] == estimated_measure["measurementDuration"] < 25
        assert disclosure["task"]["taskStage"] == "training" and "task.dataset" in outcome.err
    base.write_text(outcome.out)
    repeated_disclosure = joulemap(
        "report", EXAMPLE_RECORDING, "--disclose", "boamps", *MODEL_OPTIONS, "--into", base
    ).json
    assert repeated_disclosure["measures"] == disclosure["measures"], "a completed report does not count the run twice"
