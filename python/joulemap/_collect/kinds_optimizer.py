# SPDX-License-Identifier: Apache-2.0
"""One step of an optimizer over a list of parameters: PyTorch's default implementation, one tensor after another, or
fused."""

from __future__ import annotations

from .kind import PASS_OPTIMIZER_STEP, BuiltOperation, ForwardWork, OperationKind, choose_option, draw_size

# Optimizer state read and written besides parameter and gradient, in tensors of the parameter's size.
STATE_TENSOR_COUNTS = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2, "rmsprop": 1}


def draw_optimizer_parameters(u):
    tensors = draw_size(u[1], 1, 400)
    return {
        "form": choose_option(u[2], ("sgd", "momentum", "adam", "adamw", "adamw", "rmsprop")),
        "way": choose_option(u[3], ("default", "default", "fused", "one-by-one")),
        "tensors": tensors,
        "elements": max(tensors, draw_size(u[0], 1000, 100_000_000)),
    }


def build_optimizer(make, p):
    """Makes an optimizer step. A tenth of the tensors contains half of the elements, like matrices beside biases."""
    few = max(1, p["tensors"] // 10)
    rest = p["tensors"] - few
    large = p["elements"] // 2 // few if rest else p["elements"] // few
    sizes = [max(1, large)] * few + [max(1, p["elements"] // 2 // max(1, rest))] * rest
    parameters = [make.make_weight(size) for size in sizes]
    for parameter in parameters:
        parameter.requires_grad_(True)
        parameter.grad = make.torch.randn_like(parameter) * 1e-3
    optimizer = make_optimizer(make.torch, p["form"], p["way"], parameters)
    return BuiltOperation(optimizer.step)


def make_optimizer(torch, form: str, way: str, parameters):
    more = {"fused": {"fused": True}, "one-by-one": {"foreach": False}}.get(way, {})
    if form == "rmsprop":
        return torch.optim.RMSprop(parameters, lr=1e-6, **({} if "fused" in more else more))
    if form in ("adam", "adamw"):
        return (torch.optim.Adam if form == "adam" else torch.optim.AdamW)(parameters, lr=1e-6, **more)
    return torch.optim.SGD(parameters, lr=1e-6, momentum=0.9 if form == "momentum" else 0.0, **more)


def count_optimizer_work(p):
    states = STATE_TENSOR_COUNTS[p["form"]]
    return ForwardWork((2 + 4 * states) * p["elements"], (2 + states) * p["elements"], (1 + states) * p["elements"])


KINDS = [
    OperationKind(
        "optimizer",
        320,
        4,
        draw_optimizer_parameters,
        build_optimizer,
        count_optimizer_work,
        ("fp32", "fp32", "bf16"),
        (PASS_OPTIMIZER_STEP,),
        False,
    )
]
