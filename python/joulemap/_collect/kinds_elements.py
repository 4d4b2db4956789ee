# SPDX-License-Identifier: Apache-2.0
"""Elementwise operations and data movement: activation, rescaling, reshape, dropout, add, multiply, concatenate,
cast, reduce, and the input that is copied from the host."""

from __future__ import annotations

from .kind import FORWARD, BuiltOperation, Kind, Work, choose, product, draw_size, draw_width

# Activations to draw. The backward pass of each reads the input or the output of the forward pass.
ACTIVATIONS = ("relu", "gelu", "silu", "sigmoid", "tanh", "softmax", "hardswish", "leaky_relu", "relu6", "log_softmax")


def draw_tensor(u):
    """Draws an image (batch, channels, pixels) or a text (batch, tokens, width); the last dimension is `width`."""
    if u[2] < 0.5:
        side = draw_size(u[3], 4, 256)
        return {"batch": draw_size(u[0], 1, 256), "rows": draw_width(u[1], 3, 2048), "width": side * side}
    return {"batch": draw_size(u[0], 1, 256), "rows": draw_size(u[1], 1, 2048), "width": draw_width(u[3], 16, 16384)}


def elements(p) -> int:
    return product(p["batch"], p["rows"], p["width"])


def tensor(make, p):
    return make.input(p["batch"], p["rows"], p["width"])


def draw_activation(u):
    return {"form": choose(u[4], ACTIVATIONS), **draw_tensor(u)}


def build_activation(make, p):
    x, compute = tensor(make, p), getattr(make.torch.nn.functional, p["form"])
    if p["form"] in ("softmax", "log_softmax"):
        return BuiltOperation(lambda: compute(x, -1), [x])
    return BuiltOperation(lambda: compute(x), [x])


def work_activation(p):
    return Work(elements(p), elements(p), elements(p), saved=elements(p))


def draw_rescaling(u):
    return {**draw_tensor(u), "from_bytes": u[4] < 0.4}


def build_rescaling(make, p):
    x = make.bytes(p["batch"], p["rows"], p["width"]) if p["from_bytes"] else tensor(make, p)
    if p["from_bytes"]:
        return BuiltOperation(lambda: x.to(make.dtype) * 0.00784 + -1.0)
    return BuiltOperation(lambda: x * 0.5 + 0.25, [x])


def work_rescaling(p):
    """Counts two kernels in eager mode, three from bytes; includes writing and reading the intermediates between
    them."""
    size = elements(p)
    intermediates = 2 * size if not p["from_bytes"] else 4 * size
    if p["from_bytes"]:
        return Work(2 * size, 0, size, intermediates=intermediates, other_bytes=size)
    return Work(2 * size, size, size, intermediates=intermediates)


def draw_reshape(u):
    return {"form": choose(u[4], ("heads", "channels-last", "channels-first", "transpose")), **draw_tensor(u)}


def build_reshape(make, p):
    x = tensor(make, p)
    if p["form"] == "heads" and p["width"] % 8 == 0:  # as in attention: (batch, rows, heads, width) to heads first
        return BuiltOperation(lambda: x.view(p["batch"], p["rows"], 8, -1).transpose(1, 2).contiguous(), [x])
    if p["form"] == "channels-first":
        y = x.transpose(1, 2)
        return BuiltOperation(lambda: y.reshape(p["batch"], -1), [x])
    if p["form"] == "transpose":
        flat = x.view(-1, p["width"])
        return BuiltOperation(lambda: flat.t().contiguous(), [x])
    return BuiltOperation(lambda: x.transpose(1, 2).contiguous(), [x])


def work_moved(p):
    return Work(0, elements(p), elements(p))


def draw_dropout(u):
    return {**draw_tensor(u), "rate": choose(u[4], (0.1, 0.2, 0.5))}


def build_dropout(make, p):
    x, drop = tensor(make, p), make.torch.nn.functional.dropout
    return BuiltOperation(lambda: drop(x, p["rate"], training=True), [x])


def work_dropout(p):
    return Work(elements(p), elements(p), elements(p), other_bytes=elements(p))


def draw_pair(u):
    return {"form": choose(u[4], ("same", "same", "row", "last", "scalar")), **draw_tensor(u)}


def second(make, p):
    shapes = {"same": (p["batch"], p["rows"], p["width"]), "row": (p["batch"], p["rows"], 1), "last": (p["width"],)}
    return make.input(*shapes.get(p["form"], (1,)))


def second_elements(p) -> int:
    return {"same": elements(p), "row": p["batch"] * p["rows"], "last": p["width"]}.get(p["form"], 1)


def build_add(make, p):
    x, y = tensor(make, p), second(make, p)
    return BuiltOperation(lambda: make.torch.add(x, y), [x, y])


def work_add(p):
    return Work(elements(p), elements(p) + second_elements(p), elements(p))


def build_multiply(make, p):
    x, y = tensor(make, p), second(make, p)
    return BuiltOperation(lambda: make.torch.mul(x, y), [x, y])


def work_multiply(p):
    both = elements(p) + second_elements(p)
    return Work(elements(p), both, elements(p), saved=both)


def draw_concatenate(u):
    return {**draw_tensor(u), "parts": choose(u[4], (2, 2, 3, 4, 6))}


def build_concatenate(make, p):
    parts = [tensor(make, p) for _ in range(p["parts"])]
    return BuiltOperation(lambda: make.torch.cat(parts, 1), parts)


def work_concatenate(p):
    return Work(0, p["parts"] * elements(p), p["parts"] * elements(p))


def draw_cast(u):
    return {"to": choose(u[4], ("bf16", "fp16", "fp32")), **draw_tensor(u)}


def build_cast(make, p):
    x, to = tensor(make, p), make.dtype_of(p["to"])
    if to == make.dtype:
        return BuiltOperation(lambda: x.clone(), [x])
    return BuiltOperation(lambda: x.to(to), [x])


def work_cast(p):
    out = elements(p) * (4 if p["to"] == "fp32" else 2)
    return Work(0, elements(p), 0, other_bytes=out)


def draw_reduce(u):
    return {
        "form": choose(u[4], ("mean", "sum", "amax")),
        "over": choose(u[5], ("last", "rows", "all")),
        **draw_tensor(u),
    }


def build_reduce(make, p):
    x, compute = tensor(make, p), getattr(make.torch, p["form"])
    over = {"last": (2,), "rows": (1,), "all": (0, 1, 2)}[p["over"]]
    return BuiltOperation(lambda: compute(x, dim=over), [x])


def work_reduce(p):
    left = {"last": p["batch"] * p["rows"], "rows": p["batch"] * p["width"], "all": 1}[p["over"]]
    return Work(elements(p), elements(p), left)


def draw_input(u):
    side = draw_size(u[1], 16, 320)
    return {
        "batch": draw_size(u[0], 1, 256),
        "channels": choose(u[2], (3, 3, 1, 4)),
        "height": side,
        "width": side,
        "pinned": u[3] < 0.6,
        "bytes": u[4] < 0.3,
    }


def build_input(make, p):
    pinned, shape = bool(p["pinned"]), (p["batch"], p["channels"], p["height"], p["width"])
    host = make.on_host(*shape, pinned=pinned, as_bytes=bool(p["bytes"]))
    return BuiltOperation(lambda: host.to(make.device, non_blocking=pinned))


def work_input(p):
    size = product(p["batch"], p["channels"], p["height"], p["width"])
    return Work(0, 0, 0, other_bytes=size) if p["bytes"] else Work(0, 0, size)


KINDS = [
    Kind("activation", 760, 5, draw_activation, build_activation, work_activation),
    Kind("rescaling", 240, 5, draw_rescaling, build_rescaling, work_rescaling),
    Kind("reshape", 300, 5, draw_reshape, build_reshape, work_moved, passes=(FORWARD,)),
    Kind("dropout", 240, 5, draw_dropout, build_dropout, work_dropout),
    Kind("add", 320, 5, draw_pair, build_add, work_add),
    Kind("multiply", 320, 5, draw_pair, build_multiply, work_multiply),
    Kind("concatenate", 280, 5, draw_concatenate, build_concatenate, work_concatenate, passes=(FORWARD,)),
    Kind("cast", 140, 5, draw_cast, build_cast, work_cast, passes=(FORWARD,)),
    Kind("reduce", 160, 6, draw_reduce, build_reduce, work_reduce, passes=(FORWARD, FORWARD, "backward")),
    Kind("input", 240, 5, draw_input, build_input, work_input, passes=(FORWARD,), in_graph=False),
]
