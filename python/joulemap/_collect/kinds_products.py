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


def draw_dense_parameters(unit_draws):
    return {
        "rows": draw_size(unit_draws[0], 1, 65536),
        "in": draw_width(unit_draws[1], 16, 16384),
        "out": draw_width(unit_draws[2], 10, 16384),
        "bias": unit_draws[3] < 0.7,
    }


def build_dense(tensor_factory, parameters):
    x, weight = (
        tensor_factory.make_input(parameters["rows"], parameters["in"]),
        tensor_factory.make_weight(parameters["out"], parameters["in"]),
    )
    bias = tensor_factory.make_weight(parameters["out"]) if parameters["bias"] else None
    linear_function = tensor_factory.torch.nn.functional.linear
    return BuiltOperation(lambda: linear_function(x, weight, bias), [x], [weight] if bias is None else [weight, bias])


def count_dense_work(parameters):
    rows, in_features, out_features = parameters["rows"], parameters["in"], parameters["out"]
    return ForwardWork(
        2 * rows * in_features * out_features,
        rows * in_features,
        rows * out_features,
        in_features * out_features + parameters["bias"] * out_features,
        saved_for_backward=rows * in_features,
    )


def draw_bmm_parameters(unit_draws):
    return {
        "batch": draw_size(unit_draws[0], 1, 1024),
        "m": draw_width(unit_draws[1], 8, 4096),
        "k": draw_width(unit_draws[2], 8, 4096),
        "n": draw_width(unit_draws[3], 8, 4096),
        "transposed": unit_draws[4] < 0.5,
    }


def build_bmm(tensor_factory, parameters):
    first_matrix = tensor_factory.make_input(parameters["batch"], parameters["m"], parameters["k"])
    if parameters["transposed"]:
        second_matrix = tensor_factory.make_input(parameters["batch"], parameters["n"], parameters["k"])
        return BuiltOperation(
            lambda: tensor_factory.torch.bmm(first_matrix, second_matrix.transpose(1, 2)), [first_matrix, second_matrix]
        )
    second_matrix = tensor_factory.make_input(parameters["batch"], parameters["k"], parameters["n"])
    return BuiltOperation(lambda: tensor_factory.torch.bmm(first_matrix, second_matrix), [first_matrix, second_matrix])


def count_bmm_work(parameters):
    batch, m, k, n = parameters["batch"], parameters["m"], parameters["k"], parameters["n"]
    operand_elements = batch * (m * k + k * n)
    # The backward pass has two products, as with weights, so both operands count as weights.
    return ForwardWork(2 * batch * m * k * n, 0, batch * m * n, operand_elements)


def draw_attention_parameters(unit_draws):
    tokens = draw_size(unit_draws[2], 16, 4096)
    return {
        "batch": draw_size(unit_draws[0], 1, 128),
        "heads": draw_size(unit_draws[1], 1, 32),
        "queries": 1 if unit_draws[5] < 0.06 else tokens,
        "keys": tokens,
        "width": choose_option(unit_draws[3], (32, 64, 64, 64, 80, 96, 128, 128)),
        "causal": unit_draws[4] < 0.4 and unit_draws[5] >= 0.06,
    }


def build_attention(tensor_factory, parameters):
    q = tensor_factory.make_input(parameters["batch"], parameters["heads"], parameters["queries"], parameters["width"])
    k, v = (
        tensor_factory.make_input(parameters["batch"], parameters["heads"], parameters["keys"], parameters["width"])
        for _ in range(2)
    )
    attention = tensor_factory.torch.nn.functional.scaled_dot_product_attention
    return BuiltOperation(lambda: attention(q, k, v, is_causal=bool(parameters["causal"])), [q, k, v])


def count_attention_work(parameters):
    head_count = parameters["batch"] * parameters["heads"]
    query_elements, key_elements = (
        head_count * parameters["queries"] * parameters["width"],
        head_count * parameters["keys"] * parameters["width"],
    )
    # q, k and v count as weights: the backward pass reads them again and writes their gradients.
    return ForwardWork(
        4 * head_count * parameters["queries"] * parameters["keys"] * parameters["width"],
        0,
        query_elements,
        query_elements + 2 * key_elements,
        saved_for_backward=query_elements,
    )


def draw_embedding_parameters(unit_draws):
    return {
        "vocabulary": draw_size(unit_draws[0], 100, 250000),
        "width": draw_width(unit_draws[1], 16, 4096),
        "tokens": draw_size(unit_draws[2], 1, 262144),
    }


def build_embedding(tensor_factory, parameters):
    table, tokens = (
        tensor_factory.make_weight(parameters["vocabulary"], parameters["width"]),
        tensor_factory.make_indices(parameters["vocabulary"], parameters["tokens"]),
    )
    embedding = tensor_factory.torch.nn.functional.embedding
    return BuiltOperation(lambda: embedding(tokens, table), [], [table])


def count_embedding_work(parameters):
    """Work of an embedding. The backward pass writes a gradient of the whole table, which is mostly zeros."""
    moved_elements, table_elements = (
        parameters["tokens"] * parameters["width"],
        parameters["vocabulary"] * parameters["width"],
    )
    return ForwardWork(
        moved_elements, moved_elements, moved_elements, gradients=table_elements, other_bytes=8 * parameters["tokens"]
    )


def draw_loss_parameters(unit_draws):
    return {"rows": draw_size(unit_draws[0], 1, 16384), "classes": draw_width(unit_draws[1], 2, 131072)}


def build_loss(tensor_factory, parameters):
    x, target = (
        tensor_factory.make_input(parameters["rows"], parameters["classes"]),
        tensor_factory.make_indices(parameters["classes"], parameters["rows"]),
    )
    loss = tensor_factory.torch.nn.functional.cross_entropy
    return BuiltOperation(lambda: loss(x, target), [x])


def count_loss_work(parameters):
    # Log softmax writes as much as it reads; the loss itself is one number.
    size = element_count(parameters["rows"], parameters["classes"])
    return ForwardWork(size, size, size, 0, saved_for_backward=size, other_bytes=8 * parameters["rows"])


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
