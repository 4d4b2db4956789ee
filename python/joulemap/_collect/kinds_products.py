# SPDX-License-Identifier: Apache-2.0
"""Matrix products and the other parts of transformers: dense, bmm, attention, embedding, loss."""

from __future__ import annotations

from .kind import (
    PASS_BACKWARD,
    PASS_BACKWARD_WEIGHTS,
    PASS_FORWARD,
    BuiltOperation,
    ForwardWork,
    OperationKind,
    choose_option,
    draw_size,
    draw_width,
    element_count,
)

PRODUCT_DTYPES = ("bf16", "fp32", "fp16", "tf32")


def draw_dense_parameters(u):
    return {
        "rows": draw_size(u[0], 1, 65536),
        "in": draw_width(u[1], 16, 16384),
        "out": draw_width(u[2], 10, 16384),
        "bias": u[3] < 0.7,
    }


def build_dense(make, p):
    x, weight = make.make_input(p["rows"], p["in"]), make.make_weight(p["out"], p["in"])
    bias = make.make_weight(p["out"]) if p["bias"] else None
    linear = make.torch.nn.functional.linear
    return BuiltOperation(lambda: linear(x, weight, bias), [x], [weight] if bias is None else [weight, bias])


def count_dense_work(p):
    rows, into, out = p["rows"], p["in"], p["out"]
    return ForwardWork(
        2 * rows * into * out, rows * into, rows * out, into * out + p["bias"] * out, saved_for_backward=rows * into
    )


def draw_bmm_parameters(u):
    return {
        "batch": draw_size(u[0], 1, 1024),
        "m": draw_width(u[1], 8, 4096),
        "k": draw_width(u[2], 8, 4096),
        "n": draw_width(u[3], 8, 4096),
        "transposed": u[4] < 0.5,
    }


def build_bmm(make, p):
    a = make.make_input(p["batch"], p["m"], p["k"])
    if p["transposed"]:
        b = make.make_input(p["batch"], p["n"], p["k"])
        return BuiltOperation(lambda: make.torch.bmm(a, b.transpose(1, 2)), [a, b])
    b = make.make_input(p["batch"], p["k"], p["n"])
    return BuiltOperation(lambda: make.torch.bmm(a, b), [a, b])


def count_bmm_work(p):
    batch, m, k, n = p["batch"], p["m"], p["k"], p["n"]
    both = batch * (m * k + k * n)
    # The backward pass has two products, as with weights, so both operands count as weights.
    return ForwardWork(2 * batch * m * k * n, 0, batch * m * n, both)


def draw_attention_parameters(u):
    tokens = draw_size(u[2], 16, 4096)
    return {
        "batch": draw_size(u[0], 1, 128),
        "heads": draw_size(u[1], 1, 32),
        "queries": 1 if u[5] < 0.06 else tokens,
        "keys": tokens,
        "width": choose_option(u[3], (32, 64, 64, 64, 80, 96, 128, 128)),
        "causal": u[4] < 0.4 and u[5] >= 0.06,
    }


def build_attention(make, p):
    q = make.make_input(p["batch"], p["heads"], p["queries"], p["width"])
    k, v = (make.make_input(p["batch"], p["heads"], p["keys"], p["width"]) for _ in range(2))
    attend = make.torch.nn.functional.scaled_dot_product_attention
    return BuiltOperation(lambda: attend(q, k, v, is_causal=bool(p["causal"])), [q, k, v])


def count_attention_work(p):
    heads = p["batch"] * p["heads"]
    query, key = heads * p["queries"] * p["width"], heads * p["keys"] * p["width"]
    # q, k and v count as weights: the backward pass reads them again and writes their gradients.
    return ForwardWork(
        4 * heads * p["queries"] * p["keys"] * p["width"], 0, query, query + 2 * key, saved_for_backward=query
    )


def draw_embedding_parameters(u):
    return {
        "vocabulary": draw_size(u[0], 100, 250000),
        "width": draw_width(u[1], 16, 4096),
        "tokens": draw_size(u[2], 1, 262144),
    }


def build_embedding(make, p):
    table, tokens = make.make_weight(p["vocabulary"], p["width"]), make.make_indices(p["vocabulary"], p["tokens"])
    embedding = make.torch.nn.functional.embedding
    return BuiltOperation(lambda: embedding(tokens, table), [], [table])


def count_embedding_work(p):
    """Work of an embedding. The backward pass writes a gradient of the whole table, which is mostly zeros."""
    moved, table = p["tokens"] * p["width"], p["vocabulary"] * p["width"]
    return ForwardWork(moved, moved, moved, gradients=table, other_bytes=8 * p["tokens"])


def draw_loss_parameters(u):
    return {"rows": draw_size(u[0], 1, 16384), "classes": draw_width(u[1], 2, 131072)}


def build_loss(make, p):
    x, target = make.make_input(p["rows"], p["classes"]), make.make_indices(p["classes"], p["rows"])
    loss = make.torch.nn.functional.cross_entropy
    return BuiltOperation(lambda: loss(x, target), [x])


def count_loss_work(p):
    # Log softmax writes as much as it reads; the loss itself is one number.
    size = element_count(p["rows"], p["classes"])
    return ForwardWork(size, size, size, 0, saved_for_backward=size, other_bytes=8 * p["rows"])


DRAWN_PASSES = (PASS_FORWARD, PASS_BACKWARD, PASS_FORWARD, PASS_BACKWARD_WEIGHTS, PASS_BACKWARD, PASS_FORWARD)
KINDS = [
    OperationKind("dense", 1100, 4, draw_dense_parameters, build_dense, count_dense_work, PRODUCT_DTYPES, DRAWN_PASSES),
    OperationKind("bmm", 350, 5, draw_bmm_parameters, build_bmm, count_bmm_work, PRODUCT_DTYPES),
    OperationKind(
        "attention",
        600,
        6,
        draw_attention_parameters,
        build_attention,
        count_attention_work,
        ("bf16", "fp16", "fp32", "bf16", "tf32"),
    ),
    OperationKind("embedding", 260, 3, draw_embedding_parameters, build_embedding, count_embedding_work),
    OperationKind("loss", 220, 2, draw_loss_parameters, build_loss, count_loss_work, ("fp32", "bf16")),
]
