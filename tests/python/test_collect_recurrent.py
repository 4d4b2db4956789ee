"""What the collector measures for recurrent layers, and the recurrent networks that evaluate predictions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "joulemap"))

from _collect import design, kind, networks, operations  # noqa: E402


@pytest.fixture(scope="module")
def plan():
    return design.plan_designed_rows()


def recurrent_rows(plan):
    return [row for row in plan if row.kind == "recurrent"]


def test_recurrent_layers_cover_forms_layers_directions_types_and_passes(plan):
    rows = recurrent_rows(plan)
    assert len(rows) >= 200
    first_rows = rows[:150]  # every prefix is a balanced design
    for name, distinct_count in (("form", 4), ("layers", 3), ("directions", 2)):
        assert len({row.parameters[name] for row in first_rows}) == distinct_count
    assert {row.dtype for row in first_rows} == {"fp32", "tf32", "fp16", "bf16"}
    assert {row.pass_name for row in first_rows} == {"forward", "backward"}
    for name, low, high in (("hidden", 64, 1024), ("steps", 16, 512), ("batch", 2, 128)):
        sizes = [row.parameters[name] for row in first_rows]
        assert min(sizes) <= low and max(sizes) >= high


def test_a_recurrent_layer_has_the_products_of_its_steps():
    sizes = {"form": "lstm", "batch": 4, "steps": 10, "in": 6, "hidden": 8, "layers": 2, "directions": 1, "bias": 1}
    cost = kind.operation_cost(design.OPERATION_KINDS["recurrent"].forward_work(sizes), "fp32", "forward")
    matrices = 32 * (6 + 8) + 32 * (8 + 8)
    assert cost.flops == 2 * 40 * matrices + 2 * 40 * 32


def test_a_recurrent_layer_runs_forward_and_backward():
    torch = pytest.importorskip("torch")
    for pass_name in ("forward", "backward"):
        row = next(
            row
            for row in recurrent_rows(design.plan_designed_rows(["recurrent"]))
            if row.pass_name == pass_name and row.dtype == "fp32"
        )
        small_parameters = {**row.parameters, "batch": 2, "steps": 3, "in": 4, "hidden": 8}
        (call,) = operations.make_operation_calls(torch, "cpu", row._replace(parameters=small_parameters))
        assert call() is not None


def test_recurrent_networks_are_held_out_and_accept_their_inputs():
    torch = pytest.importorskip("torch")
    planned = networks.plan_networks(2, held_out=True, package="recurrent")
    assert len(planned) >= 4 and networks.plan_networks(2, held_out=False, package="recurrent") == []
    for network_settings in planned:
        with networks.LoadedNetwork(torch, "meta", network_settings[0].network) as loaded_network:
            assert loaded_network.make_call(network_settings[0]._replace(batch=2, size=3, dtype="fp32"))() is not None
