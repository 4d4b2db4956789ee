# SPDX-License-Identifier: Apache-2.0
"""A synthetic table of networks measured eagerly and compiled, with synthetic predictions."""

from __future__ import annotations

import gzip
import json
import stat

import compiled
import pytest

COLUMNS = "kind,parameters,dtype,pass,way,energy_j,slice"


@pytest.fixture
def table(tmp_path):
    """a: 10 J eager and 8 J compiled, the means of two runs; b, trained: 4 J and 2 J; c was not compiled."""
    rows = [
        ("a", "inference", "eager", 9, 1), ("a", "inference", "compiled", 7, 1),
        ("a", "inference", "eager", 11, 2), ("a", "inference", "compiled", 9, 2),
        ("a", "inference", "eager", 99, 3),
        ("b", "training", "eager", 4, 1), ("b", "training", "compiled", 2, 1),
        ("c", "inference", "eager", 5, 1),
    ]  # fmt: skip
    lines = [
        f"compiled,name={name};package=made-up;batch=8;size=224,default,{pass_name},{execution_mode},{joules},{run}"
        for name, pass_name, execution_mode, joules, run in rows
    ]
    path = tmp_path / "compiled.csv.gz"
    path.write_bytes(gzip.compress("\n".join([COLUMNS, *lines]).encode()))
    return path


def trace(setting: compiled.Setting) -> dict:
    return {"name": setting.name}


def predict(operations: dict, mode: str) -> float:
    return {"a": {"eager": 11.0, "compiled": 8.8}, "b": {"eager": 4.0, "compiled": 3.0}}[operations["name"]][mode]


def test_runs_without_both_modes_are_ignored(table):
    measured = compiled.read(table)
    assert {setting.name: joules for setting, joules in measured.items()} == {
        "a": {"eager": 10, "compiled": 8},
        "b": {"eager": 4, "compiled": 2},
    }


def test_errors_are_percentages_of_what_was_measured(table):
    inference_case, training_case = compiled.predict_cases(compiled.read(table), trace, predict)
    assert (inference_case.setting.which, training_case.setting.which) == ("inference", "training")
    assert inference_case.ratios == pytest.approx((0.8, 0.8)) and training_case.ratios == pytest.approx((0.5, 0.75))
    assert [inference_case.error(measure_name) for measure_name in ("eager", "compiled", "ratio")] == pytest.approx(
        [10, 10, 0], abs=1e-9
    )
    assert [training_case.error(measure_name) for measure_name in ("eager", "compiled", "ratio")] == pytest.approx(
        [0, 50, 50]
    )
    result = compiled.summarize_errors([inference_case, training_case], "compiled")
    assert result["rmspe"] == pytest.approx((2600 / 2) ** 0.5) and result["median"] == pytest.approx(30)


def test_the_text_has_every_setting_and_both_passes(table):
    text = compiled.format_cases(compiled.predict_cases(compiled.read(table), trace, predict))
    assert "| inference: a, 8 x 224, default | 10 | 11 | 8 | 8.8 | 0.80 | 0.80 | +10.0 % | +10.0 % | +0.0 % |" in text
    assert "| training | compiled | 1 | 50.0 % | 50.0 % | 50.0 % |" in text and "| all | ratio | 2 |" in text


def test_compiled_program_runs_in_both_modes(table, tmp_path, monkeypatch, capsys):
    program = tmp_path / "joulemap"
    result = """[ "$4" = compiled ] && echo '{"energy_j": 6}' || echo '{"energy_j": 12}'"""
    program.write_text(f"#!/bin/sh\ncat >/dev/null\n{result}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(compiled, "traced", trace)
    assert compiled.main([str(table), "--program", str(program), "--json", str(tmp_path / "cases.json")]) == 0
    result = json.loads((tmp_path / "cases.json").read_text())
    assert [case["predicted_j"] for case in result] == [{"eager": 12, "compiled": 6}] * 2
    assert "| 0.80 | 0.50 |" in capsys.readouterr().out


def test_a_table_without_eager_and_compiled_pairs_is_refused(tmp_path):
    (tmp_path / "compiled.csv.gz").write_bytes(gzip.compress(f"{COLUMNS}\n".encode()))
    with pytest.raises(SystemExit, match="both eagerly and compiled"):
        compiled.main([str(tmp_path / "compiled.csv.gz")])
