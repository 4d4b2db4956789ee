# SPDX-License-Identifier: Apache-2.0
"""Converts operations that ran within networks (layers.py) into rows of the kinds that are measured alone, so one
model can be fitted to both. Input: name and arguments as the dispatcher received them. Output: kind and parameters."""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Iterator, NamedTuple, Optional

from .kind import PASS_BACKWARD, PASS_BACKWARD_WEIGHTS, PASS_FORWARD

DTYPE_NAMES = {"float": "fp32", "c10::Half": "fp16", "c10::BFloat16": "bf16"}
ACTIVATION_FORMS = {name: name for name in "relu gelu silu sigmoid hardswish tanh leaky_relu".split()}
ACTIVATION_FORMS |= {f"{name}_": name for name in ACTIVATION_FORMS}
ACTIVATION_FORMS |= {"hardtanh": "relu6", "hardtanh_": "relu6", "_softmax": "softmax", "_log_softmax": "log_softmax"}
ELEMENTWISE_OPERATIONS = (
    "pow rsqrt sqrt exp neg erf reciprocal hardsigmoid hardsigmoid_ softplus mish mish_ elu elu_ clamp clamp_ cos sin "
    "abs log clamp_min bitwise_not eq ne lt gt le ge isinf isnan fill_ zero_ zeros ones full triu tril arange masked_fill "
    "masked_fill_ where addcmul"
).split()
ADD_OPERATIONS = {"add", "add_", "sub", "sub_", "rsub", "maximum", "minimum", "logical_and", "bitwise_and"}
MULTIPLY_OPERATIONS = {"mul", "mul_", "div", "div_"}
ATTENTION_PREFIX = "_scaled_dot_product_"


class DispatcherCall(NamedTuple):
    name: str
    sizes: list
    types: list
    strides: list
    arguments: list


class OperationRow(NamedTuple):
    kind: str
    parameters: dict
    dtype: str
    pass_name: str


def element_count(sizes: Any) -> int:
    return math.prod(sizes) if sizes else 1


def shape_to_batch_rows_width(sizes: list) -> dict:
    """Returns any tensor shape as (batch, rows, width)."""
    if len(sizes) >= 4:
        return {"batch": sizes[0], "rows": sizes[1], "width": element_count(sizes[2:])}
    if len(sizes) == 3:
        return {"batch": sizes[0], "rows": sizes[1], "width": sizes[2]}
    return {"batch": 1, "rows": sizes[0] if len(sizes) == 2 else 1, "width": sizes[-1] if sizes else 1}


def parse_list(text: str, default_value: list) -> list:
    try:
        parsed_value = json.loads(text)
    except (json.JSONDecodeError, TypeError):
        return default_value
    return parsed_value if isinstance(parsed_value, list) and parsed_value else default_value


def is_channels_last(call: DispatcherCall) -> bool:
    sizes, strides = call.sizes[0], call.strides
    return len(sizes) == 4 and len(strides) == 4 and sizes[1] > 1 and strides[1] == 1 and sizes[2] * sizes[3] > 1


def convert_convolution_call(call: DispatcherCall) -> Optional[tuple]:
    x, weight = call.sizes[0], call.sizes[1]
    if call.name == "_convolution_mode":
        stride, dilation = (parse_list(call.arguments[index], [1, 1]) for index in (3, 5))
        groups = call.arguments[6]
        padding = [(size - 1) // 2 for size in weight[2:]]
        is_transposed = False
    else:
        stride, padding, dilation = (parse_list(call.arguments[index], [1]) for index in (3, 4, 5))
        is_transposed, groups = call.arguments[6] == "True", call.arguments[8]
    if len(x) == 3:
        x, weight = [*x[:2], 1, x[2]], [*weight[:2], 1, weight[2]]
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
    if len(x) != 4:
        return None
    stride, padding, dilation = ((dimension_values * 2)[:2] for dimension_values in (stride, padding, dilation))
    out_channels = weight[1] * int(groups) if is_transposed else weight[0]
    parameters = {
        "batch": x[0],
        "channels": x[1],
        "out": out_channels,
        "height": x[2],
        "width": x[3],
        "kernel": weight[2],
    }
    parameters |= {"stride": stride[0], "padding": padding[0], "dilation": dilation[0], "groups": int(groups)}
    parameters |= {
        "bias": int(len(call.sizes) > 2 and bool(call.sizes[2])),
        "channels_last": int(is_channels_last(call)),
    }
    for name, values_by_dimension in (
        ("kernel", weight[2:]),
        ("stride", stride),
        ("padding", padding),
        ("dilation", dilation),
    ):
        if values_by_dimension[0] != values_by_dimension[1]:
            parameters[f"{name}_width"] = values_by_dimension[1]
    return "convolution", parameters | ({"transposed": 1} if is_transposed else {})


def convert_dense_call(call: DispatcherCall) -> tuple:
    first_shape, second_shape = call.sizes[1:3] if call.name == "addmm" else call.sizes[:2]
    return "dense", {
        "rows": first_shape[0],
        "in": first_shape[1],
        "out": second_shape[1],
        "bias": int(call.name == "addmm"),
    }


def convert_bmm_call(call: DispatcherCall) -> tuple:
    first_shape, second_shape = call.sizes[1:3] if call.name == "baddbmm" else call.sizes[:2]
    return "bmm", {
        "batch": first_shape[0],
        "m": first_shape[1],
        "k": first_shape[2],
        "n": second_shape[2],
        "transposed": 0,
    }


def convert_attention_call(call: DispatcherCall) -> tuple:
    query_shape, k = call.sizes[0], call.sizes[1]
    causal = int("True" in (call.arguments[5:7] if "math" in call.name else call.arguments[4:7][-1:]))
    return "attention", {
        "batch": element_count(query_shape[:-3]), "heads": query_shape[-3], "queries": query_shape[-2],
        "keys": k[-2], "width": query_shape[-1], "causal": causal,
    }  # fmt: skip


def convert_normalization_call(call: DispatcherCall) -> Optional[tuple]:
    x = call.sizes[0]
    if call.name == "native_layer_norm":
        channels = element_count(parse_list(call.arguments[1], x[-1:]))
        parameters = {"form": "layer", "batch": element_count(x) // channels, "channels": channels}
        return "normalization", {**parameters, "height": 1, "width": 1}
    form = "group"
    if "batch_norm" in call.name:
        form = "batch" if call.arguments[5] == "True" else "batch-inference"
    image = (x + [1, 1])[:4] if len(x) < 4 else x[:4]
    return "normalization", {
        "form": form,
        "batch": image[0],
        "channels": image[1],
        "height": image[2],
        "width": image[3],
    }


def convert_pooling_call(call: DispatcherCall) -> Optional[tuple]:
    x = call.sizes[0]
    if len(x) != 4:
        return None
    image = {"batch": x[0], "channels": x[1], "height": x[2], "width": x[3]}
    if call.name.startswith("_adaptive"):
        output_sides = parse_list(call.arguments[1], [1, 1])
        return "pooling", {"form": "adaptive", **image, "out": output_sides[0]}
    kernel = parse_list(call.arguments[1], [1, 1])
    stride, padding = parse_list(call.arguments[2], kernel), parse_list(call.arguments[3], [0, 0])
    form = "max" if call.name.startswith("max") else "avg"
    return "pooling", {"form": form, **image, "kernel": kernel[0], "stride": stride[0], "padding": padding[0]}


def convert_two_operand_call(call: DispatcherCall) -> tuple:
    kind = "add" if call.name in ADD_OPERATIONS else "multiply"
    x, y = call.sizes[0], call.sizes[1] if len(call.sizes) > 1 else []
    if element_count(y) > element_count(x):
        x, y = y, x
    if not y or element_count(y) == 1:
        return kind, {"form": "scalar", **shape_to_batch_rows_width(x)}
    if element_count(x) == element_count(y):
        return kind, {"form": "same", **shape_to_batch_rows_width(x)}
    if y[-1] == 1:
        return kind, {"form": "row", **shape_to_batch_rows_width(x)}
    return kind, {"form": "last", **shape_to_batch_rows_width(x)}


def convert_concatenate_call(call: DispatcherCall) -> Optional[tuple]:
    input_shapes = call.sizes[0]
    if not input_shapes or not isinstance(input_shapes[0], list):
        return None
    return "concatenate", {**shape_to_batch_rows_width(input_shapes[0]), "parts": len(input_shapes)}


def convert_reduce_call(call: DispatcherCall) -> tuple:
    x, reduced_dims = call.sizes[0], parse_list(call.arguments[1] if len(call.arguments) > 1 else "", [])
    reduces_trailing_dims = not reduced_dims or set(dim % max(1, len(x)) for dim in reduced_dims) == set(
        range(len(x) - len(reduced_dims), len(x))
    )
    kept_dim_count = len(x) - len(reduced_dims)
    parameters = (
        {"batch": 1, "rows": element_count(x[:kept_dim_count]), "width": element_count(x[kept_dim_count:])}
        if reduces_trailing_dims
        else shape_to_batch_rows_width(x)
    )
    reduced_part = "all" if len(reduced_dims) in (0, len(x)) else "last" if reduces_trailing_dims else "rows"
    return "reduce", {"form": {"sum": "sum", "amax": "amax"}.get(call.name, "mean"), "over": reduced_part, **parameters}


def convert_copy_call(call: DispatcherCall) -> tuple:
    """_to_copy casts; clone and copy_ change the memory order."""
    dtypes = [type_name for type_name in call.types[:2] if type_name in DTYPE_NAMES]
    if call.name == "_to_copy":
        target_dtype = {"15": "bf16", "5": "fp16", "6": "fp32"}.get(
            call.arguments[1] if len(call.arguments) > 1 else "", "fp32"
        )
        return "cast", {"to": target_dtype, **shape_to_batch_rows_width(call.sizes[0])}
    if call.name == "copy_" and len(set(dtypes)) == 2:
        return "cast", {"to": DTYPE_NAMES[dtypes[0]], **shape_to_batch_rows_width(call.sizes[0])}
    return "reshape", {"form": "heads", **shape_to_batch_rows_width(call.sizes[0])}


def convert_embedding_call(call: DispatcherCall) -> tuple:
    table, tokens = call.sizes[0], call.sizes[1]
    return "embedding", {"vocabulary": table[0], "width": table[-1], "tokens": element_count(tokens)}


def convert_padding_call(call: DispatcherCall) -> Optional[tuple]:
    x, pad_sizes = call.sizes[0], parse_list(call.arguments[1], [0])
    if len(x) != 4:
        return None
    return "padding", {
        "batch": x[0], "channels": x[1], "height": x[2], "width": x[3], "form": "constant", "padding": max(pad_sizes),
    }  # fmt: skip


ROW_HANDLERS: dict[str, Callable[[DispatcherCall], Optional[tuple]]] = {
    "convolution": convert_convolution_call,
    "_convolution_mode": convert_convolution_call,
    "addmm": convert_dense_call,
    "mm": convert_dense_call,
    "bmm": convert_bmm_call,
    "baddbmm": convert_bmm_call,
    "native_layer_norm": convert_normalization_call,
    "native_group_norm": convert_normalization_call,
    "native_batch_norm": convert_normalization_call,
    "cudnn_batch_norm": convert_normalization_call,
    "max_pool2d_with_indices": convert_pooling_call,
    "avg_pool2d": convert_pooling_call,
    "_adaptive_avg_pool2d": convert_pooling_call,
    "cat": convert_concatenate_call,
    "mean": convert_reduce_call,
    "sum": convert_reduce_call,
    "amax": convert_reduce_call,
    "_to_copy": convert_copy_call,
    "clone": convert_copy_call,
    "copy_": convert_copy_call,
    "embedding": convert_embedding_call,
    "constant_pad_nd": convert_padding_call,
}


def classify_call(call: DispatcherCall) -> Optional[tuple]:
    if call.name in ACTIVATION_FORMS:
        return "activation", {"form": ACTIVATION_FORMS[call.name], **shape_to_batch_rows_width(call.sizes[0])}
    if call.name.startswith(ATTENTION_PREFIX):
        return convert_attention_call(call)
    if call.name in ADD_OPERATIONS or call.name in MULTIPLY_OPERATIONS:
        return convert_two_operand_call(call)
    if call.name in ELEMENTWISE_OPERATIONS and call.sizes:
        largest_shape = max((sizes for sizes in call.sizes if sizes), key=element_count, default=[1])
        return "activation", {"form": call.name.rstrip("_"), **shape_to_batch_rows_width(largest_shape)}
    if call.name in ("native_dropout", "bernoulli_"):
        return "dropout", {**shape_to_batch_rows_width(call.sizes[0]), "rate": 0.1}
    handler = ROW_HANDLERS.get(call.name)
    return handler(call) if handler else None


def compute_dtype(call: DispatcherCall, kind: str, precision: str) -> str:
    dtypes = [DTYPE_NAMES[type_name] for type_name in call.types if type_name in DTYPE_NAMES]
    dtype = dtypes[0] if dtypes else "fp32"
    if kind in ("dense", "convolution") and len(dtypes) > 1:
        dtype = dtypes[1]
    if dtype == "fp32" and (precision == "tf32" or (precision in ("default", "amp-bf16") and kind == "convolution")):
        return "tf32" if kind in ("dense", "bmm", "attention", "convolution") else "fp32"
    return dtype


class NetworkOperation(NamedTuple):
    row: Optional[OperationRow]  # None if the operation belongs to no kind
    name: str
    phase: str
    count: int
    time_s: float  # GPU time of one call
    launches: float


def read_network_operations(line: dict) -> Iterator[NetworkOperation]:
    """Yields the operations of one network at one setting, except optimizer steps, which have a kind of their own."""
    precision = line["layers_of"].split()[-2]
    for phase, name, sizes, types, strides, arguments, node, count, time_us, launches in line["operations"]:
        short_name = name.replace("aten::", "")
        call = DispatcherCall(
            short_name, *(json.loads(text) if text else [] for text in (sizes, types, strides, arguments))
        )
        kind_and_parameters = classify_call(call) if phase in ("forward", "backward") and call.sizes else None
        row = None
        if kind_and_parameters:
            pass_name = PASS_FORWARD if phase == "forward" else PASS_BACKWARD
            if (
                phase == "backward"
                and kind_and_parameters[0] == "convolution"
                and kind_and_parameters[1]["channels"] <= 4
            ):
                pass_name = PASS_BACKWARD_WEIGHTS
            row = OperationRow(
                kind_and_parameters[0],
                kind_and_parameters[1],
                compute_dtype(call, kind_and_parameters[0], precision),
                pass_name,
            )
        yield NetworkOperation(
            row, f"{short_name} {node}".strip(), phase, count, time_us * 1e-6 / count, launches / count
        )
