# SPDX-License-Identifier: Apache-2.0
"""One step of an optimizer over a list of parameters: PyTorch's default implementation, one tensor after another, or
fused."""

from __future__ import annotations

from .kind import PASS_OPTIMIZER_STEP, BuiltOperation, ForwardWork, OperationKind, choose_option, draw_size

# Optimizer state read and written besides parameter and gradient, in tensors of the parameter's size.
STATE_TENSOR_COUNTS = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2, "rmsprop": 1}


def draw_optimizer_parameters(unit_draws):
    tensors = draw_size(unit_draws[1], 1, 400)
    return {
        "form": choose_option(unit_draws[2], ("sgd", "momentum", "adam", "adamw", "adamw", "rmsprop")),
        "way": choose_option(unit_draws[3], ("default", "default", "fused", "one-by-one")),
        "tensors": tensors,
        "elements": max(tensors, draw_size(unit_draws[0], 1000, 100_000_000)),
    }


def build_optimizer(tensor_factory, parameters):
    """Makes an optimizer step. A tenth of the tensors contains half of the elements, like matrices beside biases."""
    large_tensor_count = max(1, parameters["tensors"] // 10)
    small_tensor_count = parameters["tensors"] - large_tensor_count
    large_tensor_elements = (
        parameters["elements"] // 2 // large_tensor_count
        if small_tensor_count
        else parameters["elements"] // large_tensor_count
    )
    sizes = [max(1, large_tensor_elements)] * large_tensor_count + [
        max(1, parameters["elements"] // 2 // max(1, small_tensor_count))
    ] * small_tensor_count
    step_parameters = [tensor_factory.make_weight(size) for size in sizes]
    for parameter in step_parameters:
        parameter.requires_grad_(True)
        parameter.grad = tensor_factory.torch.randn_like(parameter) * 1e-3
    optimizer = make_optimizer(tensor_factory.torch, parameters["form"], parameters["way"], step_parameters)
    return BuiltOperation(optimizer.step)


def make_optimizer(torch, form: str, way: str, parameters):
    implementation_options = {"fused": {"fused": True}, "one-by-one": {"foreach": False}}.get(way, {})
    if form == "rmsprop":
        return torch.optim.RMSprop(
            parameters, lr=1e-6, **({} if "fused" in implementation_options else implementation_options)
        )
    if form in ("adam", "adamw"):
        return (torch.optim.Adam if form == "adam" else torch.optim.AdamW)(
            parameters, lr=1e-6, **implementation_options
        )
    return torch.optim.SGD(parameters, lr=1e-6, momentum=0.9 if form == "momentum" else 0.0, **implementation_options)


def count_optimizer_work(parameters):
    state_tensor_count = STATE_TENSOR_COUNTS[parameters["form"]]
    return ForwardWork(
        (2 + 4 * state_tensor_count) * parameters["elements"],
        (2 + state_tensor_count) * parameters["elements"],
        (1 + state_tensor_count) * parameters["elements"],
    )


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
