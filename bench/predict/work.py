# SPDX-License-Identifier: Apache-2.0
"""FLOPs, bytes and sizes of an operation, measured or listed, by the conventions of docs/reference/prediction-data.md.
Uses the collector's arithmetic, and adds cases of network lists (non-square kernels, transposed convolutions, unknown
operations)."""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

from rows import ROOT, parse

sys.path.insert(0, str(ROOT / "python" / "joulemap"))  # the collector only: the package needs a build

from _collect.design import OPERATION_KINDS  # noqa: E402
from _collect.kind import ForwardWork, OperationCost, operation_cost  # noqa: E402

# NVIDIA's data sheet of the H200 SXM: dense peaks, memory, thermal design power.
PEAK_FLOPS = {"fp32": 67e12, "tf32": 494e12, "fp16": 989e12, "bf16": 989e12}
PEAK_BYTES_PER_S = 4.8e12
TDP_W = 700.0

ZERO_COST_KINDS = {"view"}  # neither moves data nor launches a kernel
NORMALIZED_AXES = {0: "last", 1: "rows", 2: "all"}


class OperationSize(NamedTuple):
    flops: float
    bytes: float
    inputs: float  # number of elements
    outputs: float


def compute_operation_size(kind: str, parameters: dict, dtype: str, pass_name: str) -> OperationSize:
    if kind in ZERO_COST_KINDS:
        return OperationSize(0, 0, 0, 0)
    p = canonical_parameters(kind, parameters)
    forward_work = compute_forward_work(kind, p)
    cost = operation_cost(forward_work, dtype, pass_name if pass_name != "optimizer" else "forward")
    inputs = forward_work.inputs or forward_work.weights if kind in ("bmm", "attention") else forward_work.inputs
    return OperationSize(cost.flops, cost.bytes, inputs, forward_work.outputs)


def roofline_s(cost: "OperationSize | OperationCost", dtype: str) -> float:
    return max(cost.flops / PEAK_FLOPS[dtype], cost.bytes / PEAK_BYTES_PER_S)


def canonical_parameters(kind: str, parameters: dict) -> dict:
    """Returns the parameters under the collector's names; those that a list of operations omits get their default."""
    p = dict(parameters)
    if kind == "cast":
        p.setdefault("to", p.pop("form", "fp32"))
    elif kind == "reduce":
        p["over"] = NORMALIZED_AXES.get(p.get("over", "last"), p.get("over", "last"))
    elif kind == "optimizer":
        implementation = "fused" if p.pop("fused", 0) else "default" if p.pop("foreach", 1) else "one-by-one"
        p.setdefault("way", implementation)
        p["form"] = p.get("form") or "sgd"
    elif kind == "dropout":
        p.setdefault("rate", 0.1)
    elif kind == "unknown":
        p.setdefault("width", max(p.get("in", 1), p.get("out", 1)))
    for name in ("batch", "rows", "height", "width"):
        if kind not in ("dense", "embedding", "loss", "optimizer"):
            p.setdefault(name, 1)
    return p


def operation_signature(kind: str, text: str, dtype: str, pass_name: str) -> tuple:
    """Returns equal values for equal operations, measured or listed, whatever their notation."""
    parameters = canonical_parameters(kind, parse(text))
    return kind, dtype, pass_name, frozenset((name, value) for name, value in parameters.items() if value != 0)


def compute_forward_work(kind: str, p: dict) -> ForwardWork:
    if kind == "convolution":
        return convolution(p)
    if kind == "pooling" and p.get("form") != "adaptive":
        return pooling(p)
    if kind == "pooling":
        image, out = p["batch"] * p["channels"] * p["height"] * p["width"], p.get("out", p.get("out_height", 1))
        area = p.get("out_height", out) * p.get("out_width", out)
        return ForwardWork(image, image, p["batch"] * p["channels"] * area)
    if kind in ("padding", "resize") and "out_height" in p:
        channels = p["batch"] * p["channels"]
        outputs = channels * p["out_height"] * p.get("out_width", p["out_height"])
        return ForwardWork(outputs, channels * p["height"] * p["width"], outputs)
    if kind == "unknown":
        size = p["batch"] * p["rows"] * p["width"]
        return ForwardWork(size, size, size)
    default_parameters = {
        "bias": 0,
        "pinned": 0,
        "bytes": 0,
        "from_bytes": 0,
        "parts": 2,
        "form": "same",
        "over": "last",
        "padding": 0,
    }
    return OPERATION_KINDS[kind].forward_work({**default_parameters, **p})


def output_size(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    return max(1, (size + 2 * padding - dilation * (kernel - 1) - 1) // max(1, stride) + 1)


def pair(p: dict, name: str, default_value: int) -> tuple[int, int]:
    """Height and width; a single value applies to both."""
    height_value = p.get(name, default_value)
    return height_value, p.get(f"{name}_width", height_value)


def output_sizes(p: dict) -> tuple[int, int]:
    kernel, stride = pair(p, "kernel", 1), pair(p, "stride", 1)
    padding, dilation = pair(p, "padding", 0), pair(p, "dilation", 1)
    sizes = (p["height"], p["width"])
    inferred_output_sizes = [
        output_size(*window_parameters) for window_parameters in zip(sizes, kernel, stride, padding, dilation)
    ]
    return p.get("out_height", inferred_output_sizes[0]), p.get("out_width", inferred_output_sizes[1])


def convolution(p: dict) -> ForwardWork:
    depth = p.get("depth", 1)
    kernel = pair(p, "kernel", 1)
    filters = p["out"] * (p["channels"] // p.get("groups", 1)) * math.prod(kernel) * p.get("kernel_depth", 1)
    input_elements = p["batch"] * p["channels"] * p["height"] * p["width"] * depth
    pixels = math.prod(output_sizes(p)) * p.get("out_depth", depth)
    computed_pixels = p["height"] * p["width"] * depth if p.get("transposed") else pixels
    weights = filters + p.get("bias", 0) * p["out"]
    return ForwardWork(
        2 * p["batch"] * computed_pixels * filters,
        input_elements,
        p["batch"] * p["out"] * pixels,
        weights,
        saved_for_backward=input_elements,
    )


def pooling(p: dict) -> ForwardWork:
    image = p["batch"] * p["channels"]
    outputs = image * math.prod(output_sizes(p))
    indices = 8 * outputs if p.get("form") == "max" else 0
    inputs = image * p["height"] * p["width"]
    return ForwardWork(outputs * math.prod(pair(p, "kernel", 1)), inputs, outputs, other_bytes=indices)
