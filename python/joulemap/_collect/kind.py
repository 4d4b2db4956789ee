# SPDX-License-Identifier: Apache-2.0
"""Definition of a kind of operation: shapes to draw, tensors to allocate, FLOPs and bytes.

Conventions for every kind: a multiply and an add are 2 FLOPs. Attention is two matrix products, causal or not. An
elementwise operation is 1 FLOP for each element that it writes. Bytes are the minimum traffic: each tensor read once,
each tensor written once. A backward pass reads the gradient of the output, what the forward pass kept and the
weights, and writes the gradients of inputs and weights. Its FLOPs are twice the forward ones for matrix products
(convolutions, recurrent layers and attention included), else the same.
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Sequence

Parameters = dict[str, Any]  # numbers, strings and booleans, in the order in which they are written

ELEMENT_BYTES = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "uint8": 1}
PASS_FORWARD, PASS_BACKWARD, PASS_BACKWARD_WEIGHTS, PASS_OPTIMIZER_STEP = (
    "forward",
    "backward",
    "backward-weights",
    "optimizer",
)

# Upper limits of a drawn operation: a call should fit ten times into a measurement. Rates are roughly those of an
# H200.
MAX_OPERATION_BYTES = 1.5e9
MAX_OPERATION_S = 0.012
PEAK_BYTES_PER_S = 4.3e12
PEAK_FLOPS_PER_S = {"fp32": 50e12, "tf32": 350e12, "fp16": 700e12, "bf16": 700e12}


class ForwardWork(NamedTuple):
    """Work of a forward pass, in elements of the type that it computes in."""

    flops: float
    inputs: float
    outputs: float
    weights: float = 0
    saved_for_backward: float = 0  # elements that the backward pass reads besides the gradient and the weights
    intermediates: float = 0  # elements that the forward pass writes and reads again: writes plus reads
    gradients: float = 0  # elements that the backward pass writes besides gradients of inputs and weights
    other_bytes: float = 0  # bytes independent of the type: indices, masks, byte images


class OperationCost(NamedTuple):
    flops: float
    bytes: float


class BuiltOperation(NamedTuple):
    """Allocated tensors: `forward` computes; a backward pass produces the gradients of `inputs` and `weights`."""

    forward: Callable[[], Any]
    inputs: list = []
    weights: list = []


class OperationKind(NamedTuple):
    name: str
    row_count: int  # number of distinct rows in the design
    dimensions: int  # count of numbers in [0, 1) that `draw_parameters` takes
    draw_parameters: Callable[[Sequence[float]], Parameters]
    build_operation: Callable[[Any, Parameters], BuiltOperation]  # arguments: TensorFactory, parameters
    forward_work: Callable[[Parameters], ForwardWork]
    dtypes: Sequence[str] = ("fp32", "fp16", "bf16")
    passes: Sequence[str] = (PASS_FORWARD, PASS_BACKWARD)
    in_graph: bool = True  # can be captured in a CUDA graph


def operation_cost(work: ForwardWork, dtype: str, pass_name: str) -> OperationCost:
    element_bytes = ELEMENT_BYTES[dtype]
    if pass_name == PASS_OPTIMIZER_STEP or pass_name == PASS_FORWARD:
        return OperationCost(
            work.flops,
            element_bytes * (work.inputs + work.weights + work.outputs + work.intermediates) + work.other_bytes,
        )
    read_elements = work.outputs + work.saved_for_backward
    if pass_name == PASS_BACKWARD_WEIGHTS:
        return OperationCost(work.flops, element_bytes * (read_elements + work.weights) + work.other_bytes)
    moved_elements = read_elements + work.inputs + 2 * work.weights + work.gradients
    return OperationCost(
        work.flops * (2 if work.weights and work.flops > work.outputs else 1),
        element_bytes * moved_elements + work.other_bytes,
    )


def min_duration_s(cost: OperationCost, dtype: str) -> float:
    """Lower bound of the duration on an H200, in s."""
    return max(cost.flops / PEAK_FLOPS_PER_S[dtype], cost.bytes / PEAK_BYTES_PER_S)


def is_within_size_limits(cost: OperationCost, dtype: str) -> bool:
    return cost.bytes <= MAX_OPERATION_BYTES and cost.flops <= MAX_OPERATION_S * PEAK_FLOPS_PER_S[dtype]


def draw_size(unit_draw: float, minimum: int, maximum: int, multiple: int = 1) -> int:
    """Maps `unit_draw` in [0, 1) to a multiple of `multiple` between `minimum` and `maximum`, uniformly in the
    logarithm."""
    value = minimum * math.exp(unit_draw * math.log(maximum / minimum))
    return min(maximum, max(minimum, multiple * max(1, round(value / multiple))))


def draw_width(unit_draw: float, minimum: int, maximum: int) -> int:
    """Draws a width: three of four are multiples of 8, as in most networks; the rest are arbitrary."""
    size_fraction, multiple_index = unit_draw * 4 % 1, int(unit_draw * 4)
    return draw_size(size_fraction, minimum, maximum, (8, 64, 8, 1)[multiple_index] if maximum >= 64 else 1)


def choose_option(unit_draw: float, choices: Sequence) -> Any:
    return choices[min(int(unit_draw * len(choices)), len(choices) - 1)]


def element_count(*numbers: int) -> int:
    return math.prod(numbers)
