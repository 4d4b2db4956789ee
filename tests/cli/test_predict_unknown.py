"""Predictions with unknown or unmeasured operations: no total without a visible warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.onnx_bytes import integers_attribute, model, node, value, weight_tensor

ROOT = Path(__file__).resolve().parents[2]
RESNET = ROOT / "tests" / "data" / "onnx" / "resnet18.onnx"


@pytest.fixture
def model_with_unknown_operation(tmp_path: Path) -> Path:
    """A model of a convolution followed by an unknown operation."""
    nodes = [
        node(
            "Conv",
            ["x", "w"],
            ["y"],
            integers_attribute("kernel_shape", [3, 3]),
            integers_attribute("pads", [1, 1, 1, 1]),
        ),
        node("Mystery", ["y"], ["z"], domain="com.acme"),
    ]
    sizes = [2, 16, 32, 32]
    file = tmp_path / "model.onnx"
    file.write_bytes(
        model(nodes, [value("x", [2, 3, 32, 32])], [value("z", sizes)], [weight_tensor("w", [16, 3, 3, 3])])
    )
    return file


def test_unknown_operations_are_listed(joulemap, model_with_unknown_operation):
    outcome = joulemap("predict", model_with_unknown_operation, "--json")
    result = outcome.json
    assert [unknown_operation["op"] for unknown_operation in result["unknown_ops"]] and all(
        "reason" in unknown_operation for unknown_operation in result["unknown_ops"]
    )
    is_bounded = all(unknown_operation["bounded"] for unknown_operation in result["unknown_ops"])
    assert result["is_total_sound"] == is_bounded and outcome.code == (0 if is_bounded else 1)
    assert {"unknown_operations", "unbounded_operations"} & {diagnostic["code"] for diagnostic in result["diagnostics"]}
    assert "Mystery" in joulemap("predict", model_with_unknown_operation).out


def test_a_total_with_an_unknown_operation_is_printed_as_a_lower_bound(joulemap, model_with_unknown_operation):
    outcome = joulemap("predict", model_with_unknown_operation)
    first_output_lines = "\n".join(outcome.out.strip().splitlines()[:5])
    assert (
        "WARNING" in first_output_lines
        and "lower bound" in first_output_lines
        and "com.acme.Mystery" in first_output_lines
    )
    assert ">= " in outcome.out and "warning" in outcome.err and "lower bound" in outcome.err


def test_json_of_a_lower_bound_has_no_upper_bound_and_a_reason(joulemap, model_with_unknown_operation):
    outcome = joulemap("predict", model_with_unknown_operation, "--json", "--steps", "10")
    result = outcome.json
    assert result["is_lower_bound"] and result["high_j"] is None and result["lifetime"]["high_j"] is None
    assert result["energy_j"] > 0 and result["low_j"] > 0
    by_code = {diagnostic["code"]: diagnostic["message"] for diagnostic in result["diagnostics"]}
    assert "com.acme.Mystery" in by_code["unknown_operations"]
    assert [layer["high_j"] is None for layer in result["layers"]].count(True) == 1
    assert "lower bound" in outcome.err


def test_a_network_that_is_known_whole_has_no_warning(joulemap):
    outcome = joulemap("predict", RESNET, "--json")
    assert (
        outcome.err == "" and not outcome.json["is_lower_bound"] and outcome.json["high_j"] > outcome.json["energy_j"]
    )
    assert "WARNING" not in joulemap("predict", RESNET).out


def test_a_card_states_whether_its_kind_was_measured(joulemap, tmp_path):
    profile = json.loads((ROOT / "data" / "devices" / "h200.json").read_text())
    for name in ("times", "energies"):
        profile[name] = {group: result for group, result in profile[name].items() if not group.startswith("recurrent")}
    file = tmp_path / "before.json"
    file.write_text(json.dumps(profile))
    assert joulemap("operation", "torch.nn.Linear", "--json").json["is_measured"]
    assert "WARNING" not in joulemap("operation", "torch.nn.Linear").out
    assert joulemap("operation", "torch.nn.LSTM", "--profile", file, "--json").json["is_measured"] is False
    assert "no operation of this kind was measured" in joulemap("operation", "torch.nn.LSTM", "--profile", file).out


def test_operation_verb_refuses_an_unknown_operation(joulemap):
    outcome = joulemap("operation", "com.acme.Mystery")
    assert outcome.code == 2 and outcome.out == ""
