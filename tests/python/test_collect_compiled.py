# SPDX-License-Identifier: Apache-2.0
"""Networks under torch.compile, on the CPU with synthetic power, each compared with its eager version."""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "joulemap"))

from _collect import command, compiled, networks, rows, summary, tables  # noqa: E402

SMALL_NETWORK = compiled.CompiledNetwork("mlp", "mlp-2x512", 1, "default", (1, 4), 2)


@pytest.fixture
def collect(tmp_path, monkeypatch):
    """Runs the command with one small network, captured by the "eager" backend to save compile time; returns rows."""
    pytest.importorskip("torch")
    monkeypatch.setattr(compiled, "COMPILED_NETWORKS", (SMALL_NETWORK,))
    monkeypatch.setattr(compiled, "COMPILE_BACKEND", "eager")
    monkeypatch.setattr(command.gc, "disable", lambda: None)
    options = ["--kinds", "compiled", "--simulated", "--active", "0.02", "--network-active", "0.12"]

    def run(*more: str) -> list[dict]:
        assert command.main(["--out", str(tmp_path), *options, *more]) == 0
        return [line for line in rows.read_json_lines(tmp_path) if "energy_j" in line]

    return run


def test_no_held_out_family_is_compiled():
    settings = [setting for group in compiled.plan_compiled_settings() for setting in group]
    assert not networks.HELD_OUT_FAMILIES & {setting.network.family for setting in settings}
    assert len({setting.network.family for setting in settings}) >= 9


def test_every_network_has_a_small_and_a_large_batch_and_some_a_training_step():
    settings = [setting for group in compiled.plan_compiled_settings() for setting in group]
    for network in {setting.network for setting in settings}:
        batches = [
            setting.batch for setting in settings if setting.network == network and setting.pass_name == "inference"
        ]
        assert min(batches) == 1 and max(batches) >= 16
    assert sum(setting.pass_name == "training" for setting in settings) >= 5


def test_networks_that_compile_quickly_come_first():
    first_settings, last_settings = compiled.plan_compiled_settings()[0], compiled.plan_compiled_settings()[-1]
    assert first_settings[0].network.family == "mlp" and last_settings[0].network.name in (
        "mobilenet_v2",
        "efficientnet_b0",
    )


def test_each_setting_is_measured_eagerly_and_compiled_in_the_same_slice(collect):
    measured = collect()
    assert len(measured) == 6 and {row["kind"] for row in measured} == {"compiled"}
    assert len({row["key"] for row in measured}) == 6 and len({row["slice"] for row in measured}) == 1
    assert [row["way"] for row in measured] == ["eager", "compiled"] * 3
    assert all(row["energy_j"] == pytest.approx(100 * row["time_s"]) for row in measured)
    assert collect() == measured  # not measured again


def test_a_compiled_network_is_not_among_the_eager_ones(collect, tmp_path):
    measured = collect()
    command.main(["--out", str(tmp_path), "--tables", str(tmp_path / "tables")])
    counts = {}
    for name in ("operations", "networks", "compiled"):
        with gzip.open(tmp_path / "tables" / f"{name}.csv.gz", "rt", newline="") as file:
            counts[name] = len(list(csv.DictReader(file)))
    assert counts == {"operations": 0, "networks": 0, "compiled": 6}
    assert set(rows.RowStore(tmp_path / "tables").measurement_counts) == {row["key"] for row in measured}
    assert not any(tables.row_key(row).startswith("network") for row in measured)


def test_a_setting_that_cannot_be_compiled_is_reported_and_the_next_one_measured(collect, monkeypatch, tmp_path):
    import torch

    def fail(model, backend):
        raise RuntimeError("no such backend")

    monkeypatch.setattr(torch, "compile", fail)
    assert {row["way"] for row in collect()} == {"eager"}
    failure_lines = [line for line in rows.read_json_lines(tmp_path) if "failed" in line]
    assert len(failure_lines) == 3 and all(line["key"].endswith("compiled") for line in failure_lines)


def test_no_measurement_begins_without_enough_time(collect):
    assert collect("--seconds", "0.001") == []


def test_a_summary_separates_compiled_networks():
    row = {"kind": "compiled", "dtype": "default", "pass": "inference", "limited": False, "power_error_w": 1.0}
    shared_fields = {"slice": "s", "power_w": 100.0, "source": "mlp", "parameters": "name=a"}
    compiled_rows = [
        {**row, **shared_fields, "key": execution_mode, "way": execution_mode, "time_s": 0.01, "energy_j": 1.0}
        for execution_mode in compiled.EXECUTION_MODES
    ]
    text = summary.summarize_rows(compiled_rows)
    assert "| inference, compiled | 1 |" in text and "| type |" not in text
