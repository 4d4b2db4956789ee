"""Attention in PyTorch modules as a GPU runs it: a fused kernel where one exists, else PyTorch's decomposition."""

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


def test_attention_without_a_fused_kernel_is_decomposed_as_in_pytorch():
    """Five-dimensional inputs, as in windowed attention: matrix products and a softmax in 32 bits."""

    class WindowAttentionNetwork(nn.Module):
        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(x, x, x)

    operation_list = list_operations(
        WindowAttentionNetwork(), (torch.empty(2, 3, 4, 8, 16, device="meta", dtype=torch.bfloat16),), {}
    )
    operation_counts = Counter(
        (operation["kind"], operation["form"], operation["dtype"]) for operation in operation_list["operations"]
    )
    assert operation_counts[("bmm", "", "fp32")] == 2 and operation_counts[("activation", "softmax", "fp32")] == 1
    assert not operation_list["unknown"] and not [
        operation for operation in operation_list["operations"] if operation["kind"] == "attention"
    ]


def test_decomposed_masked_attention_has_all_gradients():
    class MaskedAttentionNetwork(nn.Module):
        def __init__(self):
            super().__init__()
            self.to_qkv = nn.Linear(16, 16)
            self.register_buffer("mask", torch.ones(8, 8, dtype=torch.bool).tril())

        def forward(self, x):
            x = self.to_qkv(x)
            return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=self.mask)

    model = MaskedAttentionNetwork()
    operation_list = list_operations(model, (torch.empty(2, 3, 4, 8, 16, device="meta"),), {}, training=True)
    operation_counts = Counter(
        (operation["kind"], operation["form"], operation["pass"]) for operation in operation_list["operations"]
    )
    assert (
        operation_counts[("bmm", "", "backward")] == 2 and operation_counts[("activation", "softmax", "backward")] == 1
    )
    assert not operation_list["unknown"]
    x = torch.randn(2, 3, 4, 8, 16, requires_grad=True)  # calls outside a trace are unchanged
    nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=model.mask).sum().backward()
    assert x.grad is not None and x.grad.abs().sum() > 0


def test_attention_is_one_operation_forward_and_backward():
    model = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.1)
    operation_list = list_operations(model, (torch.empty(2, 16, 64, device="meta"),), training=True)
    attention_operations = [operation for operation in operation_list["operations"] if operation["kind"] == "attention"]
    assert [operation["pass"] for operation in attention_operations] == ["forward", "backward"]
    assert {operation["layer"] for operation in attention_operations} == {"self_attn"}
    assert attention_operations[0]["parameters"] == {
        "batch": 2,
        "heads": 4,
        "queries": 16,
        "keys": 16,
        "width": 16,
        "causal": 0,
    }


def test_a_transformer_layer_that_is_one_call_is_what_it_runs():
    model = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    operation_list = list_operations(model.eval(), (torch.empty(2, 16, 64, device="meta"),))
    kinds = Counter(operation["kind"] for operation in operation_list["operations"] if operation["kind"] != "view")
    assert kinds == {"dense": 4, "attention": 1, "add": 2, "normalization": 2, "activation": 1}
