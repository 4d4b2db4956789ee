# SPDX-License-Identifier: Apache-2.0
"""Elementwise operations and data movement: activation, rescaling, reshape, dropout, add, multiply, concatenate,
cast, reduce, and the input that is copied from the host."""

from __future__ import annotations

from .kind import (
    PASS_FORWARD,
    BuiltOperation,
    ForwardWork,
    OperationKind,
    choose_option,
    draw_size,
    draw_width,
    element_count,
)

# Activations to draw. The backward pass of each reads the input or the output of the forward pass.
DRAWN_ACTIVATIONS = (
    "relu",
    "gelu",
    "silu",
    "sigmoid",
    "tanh",
    "softmax",
    "hardswish",
    "leaky_relu",
    "relu6",
    "log_softmax",
)


def draw_tensor_shape(u):
    """Draws an image (batch, channels, pixels) or a text (batch, tokens, width); the last dimension is `width`."""
    if u[2] < 0.5:
        side = draw_size(u[3], 4, 256)
        return {"batch": draw_size(u[0], 1, 256), "rows": draw_width(u[1], 3, 2048), "width": side * side}
    return {"batch": draw_size(u[0], 1, 256), "rows": draw_size(u[1], 1, 2048), "width": draw_width(u[3], 16, 16384)}


def tensor_element_count(p) -> int:
    return element_count(p["batch"], p["rows"], p["width"])


def make_tensor(make, p):
    return make.make_input(p["batch"], p["rows"], p["width"])


def draw_activation_parameters(u):
    return {"form": choose_option(u[4], DRAWN_ACTIVATIONS), **draw_tensor_shape(u)}


def build_activation(make, p):
    x, compute = make_tensor(make, p), getattr(make.torch.nn.functional, p["form"])
    if p["form"] in ("softmax", "log_softmax"):
        return BuiltOperation(lambda: compute(x, -1), [x])
    return BuiltOperation(lambda: compute(x), [x])


def count_activation_work(p):
    return ForwardWork(
        tensor_element_count(p),
        tensor_element_count(p),
        tensor_element_count(p),
        saved_for_backward=tensor_element_count(p),
    )


def draw_rescaling_parameters(u):
    return {**draw_tensor_shape(u), "from_bytes": u[4] < 0.4}


def build_rescaling(make, p):
    x = make.make_byte_tensor(p["batch"], p["rows"], p["width"]) if p["from_bytes"] else make_tensor(make, p)
    if p["from_bytes"]:
        return BuiltOperation(lambda: x.to(make.dtype) * 0.00784 + -1.0)
    return BuiltOperation(lambda: x * 0.5 + 0.25, [x])


def count_rescaling_work(p):
    """Counts two kernels in eager mode, three from bytes; includes writing and reading the intermediates between
    them."""
    size = tensor_element_count(p)
    intermediates = 2 * size if not p["from_bytes"] else 4 * size
    if p["from_bytes"]:
        return ForwardWork(2 * size, 0, size, intermediates=intermediates, other_bytes=size)
    return ForwardWork(2 * size, size, size, intermediates=intermediates)


def draw_reshape_parameters(u):
    return {
        "form": choose_option(u[4], ("heads", "channels-last", "channels-first", "transpose")),
        **draw_tensor_shape(u),
    }


def build_reshape(make, p):
    x = make_tensor(make, p)
    if p["form"] == "heads" and p["width"] % 8 == 0:  # as in attention: (batch, rows, heads, width) to heads first
        return BuiltOperation(lambda: x.view(p["batch"], p["rows"], 8, -1).transpose(1, 2).contiguous(), [x])
    if p["form"] == "channels-first":
        y = x.transpose(1, 2)
        return BuiltOperation(lambda: y.reshape(p["batch"], -1), [x])
    if p["form"] == "transpose":
        flat = x.view(-1, p["width"])
        return BuiltOperation(lambda: flat.t().contiguous(), [x])
    return BuiltOperation(lambda: x.transpose(1, 2).contiguous(), [x])


def count_reshape_work(p):
    return ForwardWork(0, tensor_element_count(p), tensor_element_count(p))


def draw_dropout_parameters(u):
    return {**draw_tensor_shape(u), "rate": choose_option(u[4], (0.1, 0.2, 0.5))}


def build_dropout(make, p):
    x, drop = make_tensor(make, p), make.torch.nn.functional.dropout
    return BuiltOperation(lambda: drop(x, p["rate"], training=True), [x])


def count_dropout_work(p):
    return ForwardWork(
        tensor_element_count(p), tensor_element_count(p), tensor_element_count(p), other_bytes=tensor_element_count(p)
    )


def draw_two_operand_parameters(u):
    return {"form": choose_option(u[4], ("same", "same", "row", "last", "scalar")), **draw_tensor_shape(u)}


def make_second_operand(make, p):
    shapes = {"same": (p["batch"], p["rows"], p["width"]), "row": (p["batch"], p["rows"], 1), "last": (p["width"],)}
    return make.make_input(*shapes.get(p["form"], (1,)))


def second_operand_element_count(p) -> int:
    return {"same": tensor_element_count(p), "row": p["batch"] * p["rows"], "last": p["width"]}.get(p["form"], 1)


def build_add(make, p):
    x, y = make_tensor(make, p), make_second_operand(make, p)
    return BuiltOperation(lambda: make.torch.add(x, y), [x, y])


def count_add_work(p):
    return ForwardWork(
        tensor_element_count(p), tensor_element_count(p) + second_operand_element_count(p), tensor_element_count(p)
    )


def build_multiply(make, p):
    x, y = make_tensor(make, p), make_second_operand(make, p)
    return BuiltOperation(lambda: make.torch.mul(x, y), [x, y])


def count_multiply_work(p):
    both = tensor_element_count(p) + second_operand_element_count(p)
    return ForwardWork(tensor_element_count(p), both, tensor_element_count(p), saved_for_backward=both)


def draw_concatenate_parameters(u):
    return {**draw_tensor_shape(u), "parts": choose_option(u[4], (2, 2, 3, 4, 6))}


def build_concatenate(make, p):
    parts = [make_tensor(make, p) for _ in range(p["parts"])]
    return BuiltOperation(lambda: make.torch.cat(parts, 1), parts)


def count_concatenate_work(p):
    return ForwardWork(0, p["parts"] * tensor_element_count(p), p["parts"] * tensor_element_count(p))


def draw_cast_parameters(u):
    return {"to": choose_option(u[4], ("bf16", "fp16", "fp32")), **draw_tensor_shape(u)}


def build_cast(make, p):
    x, to = make_tensor(make, p), make.to_torch_dtype(p["to"])
    if to == make.dtype:
        return BuiltOperation(lambda: x.clone(), [x])
    return BuiltOperation(lambda: x.to(to), [x])


def count_cast_work(p):
    out = tensor_element_count(p) * (4 if p["to"] == "fp32" else 2)
    return ForwardWork(0, tensor_element_count(p), 0, other_bytes=out)


def draw_reduce_parameters(u):
    return {
        "form": choose_option(u[4], ("mean", "sum", "amax")),
        "over": choose_option(u[5], ("last", "rows", "all")),
        **draw_tensor_shape(u),
    }


def build_reduce(make, p):
    x, compute = make_tensor(make, p), getattr(make.torch, p["form"])
    over = {"last": (2,), "rows": (1,), "all": (0, 1, 2)}[p["over"]]
    return BuiltOperation(lambda: compute(x, dim=over), [x])


def count_reduce_work(p):
    left = {"last": p["batch"] * p["rows"], "rows": p["batch"] * p["width"], "all": 1}[p["over"]]
    return ForwardWork(tensor_element_count(p), tensor_element_count(p), left)


def draw_input_parameters(u):
    side = draw_size(u[1], 16, 320)
    return {
        "batch": draw_size(u[0], 1, 256),
        "channels": choose_option(u[2], (3, 3, 1, 4)),
        "height": side,
        "width": side,
        "pinned": u[3] < 0.6,
        "bytes": u[4] < 0.3,
    }


def build_input(make, p):
    pinned, shape = bool(p["pinned"]), (p["batch"], p["channels"], p["height"], p["width"])
    host = make.make_host_tensor(*shape, pinned=pinned, as_bytes=bool(p["bytes"]))
    return BuiltOperation(lambda: host.to(make.device, non_blocking=pinned))


def count_input_work(p):
    size = element_count(p["batch"], p["channels"], p["height"], p["width"])
    return ForwardWork(0, 0, 0, other_bytes=size) if p["bytes"] else ForwardWork(0, 0, size)


KINDS = [
    OperationKind("activation", 760, 5, draw_activation_parameters, build_activation, count_activation_work),
    OperationKind("rescaling", 240, 5, draw_rescaling_parameters, build_rescaling, count_rescaling_work),
    OperationKind(
        "reshape", 300, 5, draw_reshape_parameters, build_reshape, count_reshape_work, passes=(PASS_FORWARD,)
    ),
    OperationKind("dropout", 240, 5, draw_dropout_parameters, build_dropout, count_dropout_work),
    OperationKind("add", 320, 5, draw_two_operand_parameters, build_add, count_add_work),
    OperationKind("multiply", 320, 5, draw_two_operand_parameters, build_multiply, count_multiply_work),
    OperationKind(
        "concatenate",
        280,
        5,
        draw_concatenate_parameters,
        build_concatenate,
        count_concatenate_work,
        passes=(PASS_FORWARD,),
    ),
    OperationKind("cast", 140, 5, draw_cast_parameters, build_cast, count_cast_work, passes=(PASS_FORWARD,)),
    OperationKind(
        "reduce",
        160,
        6,
        draw_reduce_parameters,
        build_reduce,
        count_reduce_work,
        passes=(PASS_FORWARD, PASS_FORWARD, "backward"),
    ),
    OperationKind(
        "input", 240, 5, draw_input_parameters, build_input, count_input_work, passes=(PASS_FORWARD,), in_graph=False
    ),
]
