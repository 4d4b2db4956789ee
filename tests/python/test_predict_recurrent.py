"""Recurrent layers of PyTorch as a GPU runs them: a stack of layers is one operation, a cell is products and gates."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "joulemap"))

from _predict.operation_list import list_operations  # noqa: E402

nn = torch.nn


def select_recurrent(operation_list: dict) -> list[dict]:
    return [operation for operation in operation_list["operations"] if operation["kind"] == "recurrent"]


def test_a_stack_of_layers_is_one_operation_with_its_sizes():
    operation_list = list_operations(nn.LSTM(24, 32, 2), [torch.empty(10, 4, 24)])
    (recurrent_operation,) = select_recurrent(operation_list)
    sizes = {"batch": 4, "steps": 10, "in": 24, "hidden": 32, "layers": 2, "directions": 1, "bias": 1}
    assert (recurrent_operation["form"], recurrent_operation["parameters"], recurrent_operation["dtype"]) == (
        "lstm",
        sizes,
        "tf32",
    )
    assert operation_list["unknown"] == []


RECURRENT_FORMS = {"gru": (nn.GRU, {}), "rnn_tanh": (nn.RNN, {}), "rnn_relu": (nn.RNN, {"nonlinearity": "relu"})}


@pytest.mark.parametrize("form", RECURRENT_FORMS)
def test_every_form_in_both_directions_and_with_the_batch_first(form):
    module, layer_options = RECURRENT_FORMS[form]
    layer = module(24, 32, bidirectional=True, batch_first=True, **layer_options)
    (recurrent_operation,) = select_recurrent(list_operations(layer, [torch.empty(4, 10, 24)]))
    assert recurrent_operation["form"] == form
    assert (
        recurrent_operation["parameters"]["batch"],
        recurrent_operation["parameters"]["steps"],
        recurrent_operation["parameters"]["directions"],
    ) == (4, 10, 2)


def test_a_sequence_without_a_batch_and_a_projection():
    (recurrent_operation,) = select_recurrent(
        list_operations(nn.LSTM(24, 32, proj_size=8), [torch.empty(10, 24)], precision="fp32")
    )
    assert (
        recurrent_operation["parameters"]["batch"] == 1
        and recurrent_operation["parameters"]["projection"] == 8
        and recurrent_operation["dtype"] == "fp32"
    )


def test_a_training_step_has_one_gradient_for_the_stack():
    operation_list = list_operations(nn.LSTM(24, 32, 2), [torch.empty(10, 4, 24)], training=True, optimizer="adamw")
    assert [operation["pass"] for operation in select_recurrent(operation_list)] == ["forward", "backward"]
    assert operation_list["weight_tensors"] == 8 and operation_list["unknown"] == []


def test_autocast_runs_recurrent_layers_in_fp16_whatever_its_type():
    operation_list = list_operations(nn.GRU(24, 32), [torch.empty(10, 4, 24)], autocast=torch.bfloat16)
    assert [operation["dtype"] for operation in select_recurrent(operation_list)] == ["fp16"]
    assert sum(operation["kind"] == "cast" for operation in operation_list["operations"]) >= 5  # input, state, weights


class CellLoopNetwork(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell, self.head = cell, nn.Linear(32, 5)

    def forward(self, x):
        state = None
        for step in x:
            state = self.cell(step, state)
        return self.head(state[0] if isinstance(state, tuple) else state)


@pytest.mark.parametrize("cell, name", [(nn.LSTMCell, "lstm"), (nn.GRUCell, "gru")])
def test_a_cell_is_two_products_and_one_kernel_for_its_gates_at_every_step(cell, name):
    source = f"aten._thnn_fused_{name}_cell"
    operation_list = list_operations(CellLoopNetwork(cell(24, 32)), [torch.empty(3, 4, 24)], training=True)
    forward = [
        operation
        for operation in operation_list["operations"]
        if operation["phase"] == "forward" and operation["layer"] == "cell"
    ]
    counts = Counter(
        operation["kind"] if operation["kind"] != "activation" else operation["source"] for operation in forward
    )
    assert counts["dense"] == 6 and counts[source] == 3
    gate_operations = [
        operation
        for operation in operation_list["operations"]
        if operation["source"] == source and operation["pass"] == "backward"
    ]
    assert len(gate_operations) == 3 and operation_list["unknown"] == []


def test_a_plain_cell_is_products_a_sum_and_an_activation():
    operation_list = list_operations(CellLoopNetwork(nn.RNNCell(24, 32)), [torch.empty(3, 4, 24)])
    counts = Counter(operation["kind"] for operation in operation_list["operations"] if operation["layer"] == "cell")
    assert (counts["dense"], counts["add"], counts["activation"]) == (6, 3, 4)


def test_packed_sequences_count_as_the_longest_and_report_it():
    class PackedLstmNetwork(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.LSTM(16, 32, batch_first=True)

        def forward(self, x):
            packed_sequence = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 4, 2]), batch_first=True)
            return nn.utils.rnn.pad_packed_sequence(self.layers(packed_sequence)[0], batch_first=True)[0]

    operation_list = list_operations(PackedLstmNetwork(), [torch.empty(3, 5, 16)], training=True)
    assert [operation["parameters"]["steps"] for operation in select_recurrent(operation_list)] == [5, 5]
    assert [operation["parameters"]["batch"] for operation in select_recurrent(operation_list)] == [3, 3]
    assert any("longest" in note for note in operation_list["notes"])


def test_layers_outside_of_a_trace_compute_unchanged():
    list_operations(nn.LSTM(4, 4), [torch.empty(3, 2, 4)])
    torch.manual_seed(1)
    module, x = nn.LSTM(4, 4), torch.randn(3, 2, 4, requires_grad=True)
    y, _ = module(x)
    y.sum().backward()
    assert x.grad is not None and bool((x.grad != 0).any())
