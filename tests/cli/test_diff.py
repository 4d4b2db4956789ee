"""diff: what changed between two recordings, and when that fails a build."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.kineto_trace import begin_ns, training

RECORDING = Path(__file__).resolve().parents[2] / "examples" / "resnet50-h200.joule"


@pytest.fixture
def recording(joulemap, tmp_path: Path):
    """recording(watts): the same traced training, at that power."""

    def make(watts: float, domain: str = "gpu0") -> Path:
        rows = [f"{begin_ns() + i * 10_000_000},{domain},power_w,{watts}" for i in range(-100, 300)]
        power = tmp_path / f"{watts}.csv"
        power.write_text("\n".join(["time_unix_ns,domain,kind,value", *rows]) + "\n")
        file = tmp_path / f"{watts}-{domain}.joule"
        trace = training(steps=20).write(tmp_path / "trace.json")
        outcome = joulemap("import", "kineto", trace, "--power", power, "-o", file)
        assert outcome.code == 0, outcome.err
        return file

    return make


def test_a_run_against_itself_is_all_noise(joulemap):
    outcome = joulemap("diff", RECORDING, RECORDING, "--json", "--fail-over", "0%")
    told = outcome.json
    assert outcome.code == 0
    assert told["schema"] == "joulemap.diff/1" and told["per"] == "step" and told["by"] == "layer"
    assert told["total"]["verdict"] == "within_noise" and told["total"]["difference_j"] == 0 and not told["failed"]
    assert {entry["verdict"] for entry in told["entries"]} == {"within_noise"}
    assert all(entry["path"] != ["probe"] for entry in told["entries"]), "probing is no part of the run"


def test_it_fails_when_the_total_grew_by_more_than_allowed(joulemap, recording):
    little, much = recording(300.0), recording(450.0)
    assert joulemap("diff", little, much).code == 0, "nobody asked"
    failed = joulemap("diff", little, much, "--fail-over", "20%", "--json")
    assert failed.code == 1 and failed.json["failed"]
    assert failed.json["total"]["relative"] == pytest.approx(0.5, rel=0.02)
    assert joulemap("diff", little, much, "--fail-over", "60%").code == 0
    assert joulemap("diff", much, little, "--fail-over", "1%").code == 0, "it shrank"
    assert "Failed" in joulemap("diff", little, much, "--fail-over", "0.2").out


def test_what_is_only_in_one_of_them_is_new_or_gone(joulemap, recording):
    told = joulemap("diff", recording(300.0), RECORDING, "--per", "run", "--json").json
    assert {"new", "gone"} <= {entry["verdict"] for entry in told["entries"]}


def test_runs_without_a_domain_in_common_do_not_compare(joulemap, recording):
    outcome = joulemap("diff", recording(300.0), recording(300.0, domain="gpu1"))
    assert outcome.code == 77 and "->" in outcome.err


@pytest.mark.parametrize("share", ["five", "-5%", "%"])
def test_a_share_that_is_none_is_wrong_usage(joulemap, share):
    assert joulemap("diff", RECORDING, RECORDING, f"--fail-over={share}").code == 2


def test_a_file_that_is_not_there_is_named(joulemap, tmp_path):
    outcome = joulemap("diff", RECORDING, tmp_path / "nothing.joule")
    assert outcome.code == 1 and "nothing.joule" in outcome.err
