#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data/seed/: the layers of Keras' networks at batches of 16, 32 and 64 and sizes of 300, 400 and 500, for a
forward pass, followed by fully connected layers of 4096, 2048, 1024, 512, 256, 128, 64, 32 and 10.

It writes two tables like those in data/networks. `operations.csv.gz` contains every distinct operation with a number,
as the collector measures it (`joulemap collect --listed data/seed`). `settings.csv.gz` contains a line for each
network, batch and size with its operations as `number:count`. Networks come in measurement order, each with all nine
settings. Needs Keras with PyTorch; nothing is computed.

Types follow PyTorch's defaults: TF32 in convolutions, else 32 bits. A layer with its own activation is two
operations; so is a separable convolution. Uneven padding of a convolution or pooling becomes even padding with the
same output size. Layers that launch nothing are not listed: dropout, reshape, flatten. DenseNet and ConvNeXt, which
evaluate predictions, are never listed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Iterator

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "python" / "joulemap"))  # after Keras: this folder has a module of that name
os.environ.setdefault("KERAS_BACKEND", "torch")

from _collect import design, rows  # noqa: E402

# (network, family as in data/networks)
NETWORKS = (
    *((name, "VGG") for name in ("VGG16", "VGG19")),
    *((name, "ResNet") for name in ("ResNet50", "ResNet101", "ResNet152")),
    ("MobileNet", "MobileNet"),
    ("MobileNetV2", "MobileNet"),
    ("InceptionV3", "Inception"),
    ("Xception", "Xception"),
    *((name, "ResNet") for name in ("ResNet50V2", "ResNet101V2", "ResNet152V2")),
    ("EfficientNetB0", "EfficientNet"),
    ("InceptionResNetV2", "Inception"),
    *((f"EfficientNetB{number}", "EfficientNet") for number in range(1, 8)),
)
BATCH_SIZES, IMAGE_SIZES = (16, 32, 64), (300, 400, 500)
HIDDEN_WIDTHS = (4096, 2048, 1024, 512, 256, 128, 64, 32, 10)
LAYERS_WITHOUT_WORK = {"Dropout", "Flatten", "Reshape"}
FORM_BY_ACTIVATION = {
    "swish": "silu",
    "silu": "silu",
    "relu": "relu",
    "relu6": "relu6",
    "sigmoid": "sigmoid",
    "softmax": "softmax",
}
OPERATION_COLUMNS = ["id", "kind", "parameters", "dtype", "pass", "phase"]
SETTING_COLUMNS = ["network", "family", "package", "batch", "size", "dtype", "pass", "unknown", "operations"]

OperationSpec = tuple[str, dict]  # kind and parameters


def image_shape_parameters(batch: int, shape) -> dict:
    _, height, width, channels = shape
    return {"batch": batch, "channels": channels, "height": height, "width": width}


def shape_to_batch_rows_width(batch: int, shape) -> dict:
    """Returns any tensor as (batch, rows, width), channels before pixels."""
    if len(shape) == 4:
        return {"batch": batch, "rows": shape[3], "width": shape[1] * shape[2]}
    return {"batch": 1, "rows": batch, "width": shape[-1]}


def get_input_tensors(layer) -> list:
    return layer.input if isinstance(layer.input, (list, tuple)) else [layer.input]


def check_even_padding(size: int, out: int, kernel: int, stride: int, padding: str) -> int:
    even_padding = (kernel - 1) // 2 if padding == "same" else 0
    if (size + 2 * even_padding - kernel) // stride + 1 != out:
        raise ValueError(f"{size} to {out} by a kernel of {kernel} and a stride of {stride} has no even padding")
    return even_padding


def sliding_window_parameters(layer, kernel, strides, before, after) -> dict:
    height, width = (
        check_even_padding(before[side], after[side], kernel[side - 1], strides[side - 1], layer.padding)
        for side in (1, 2)
    )
    parameters = {"kernel": kernel[0], "stride": strides[0], "padding": height}
    width_parameters = {"kernel_width": kernel[1], "stride_width": strides[1], "padding_width": width}
    return parameters, {
        name: value for name, value in width_parameters.items() if value != parameters[name.removesuffix("_width")]
    }


def make_convolution(layer, batch: int, out: int, groups: int, bias: bool) -> OperationSpec:
    input_shape, output_shape = get_input_tensors(layer)[0].shape, layer.output.shape
    parameters, width_parameters = sliding_window_parameters(
        layer, layer.kernel_size, layer.strides, input_shape, output_shape
    )
    sides = {"height": input_shape[1], "width": input_shape[2]}
    channels = {"batch": batch, "channels": input_shape[3], "out": out, **sides}
    remaining_parameters = {"dilation": 1, "groups": groups, "bias": bias, "channels_last": False}
    return "convolution", {**channels, **parameters, **remaining_parameters, **width_parameters}


def list_activation_operations(name: str, batch: int, shape) -> Iterator[OperationSpec]:
    if name != "linear":
        yield "activation", {"form": FORM_BY_ACTIVATION[name], **shape_to_batch_rows_width(batch, shape)}


def list_conv2d_operations(layer, batch: int) -> Iterator[OperationSpec]:
    yield make_convolution(layer, batch, layer.filters, layer.groups, layer.use_bias)
    yield from list_activation_operations(layer.activation.__name__, batch, layer.output.shape)


def list_depthwise_operations(layer, batch: int) -> Iterator[OperationSpec]:
    channels = get_input_tensors(layer)[0].shape[3]
    yield make_convolution(layer, batch, channels * layer.depth_multiplier, channels, layer.use_bias)
    yield from list_activation_operations(layer.activation.__name__, batch, layer.output.shape)


def list_separable_operations(layer, batch: int) -> Iterator[OperationSpec]:
    channels, output_shape = get_input_tensors(layer)[0].shape[3], layer.output.shape
    yield make_convolution(layer, batch, channels, channels, False)
    parameters = {
        "batch": batch,
        "channels": channels,
        "out": layer.filters,
        "height": output_shape[1],
        "width": output_shape[2],
    }
    parameters |= {"kernel": 1, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}
    yield "convolution", {**parameters, "bias": layer.use_bias, "channels_last": False}
    yield from list_activation_operations(layer.activation.__name__, batch, output_shape)


def make_pooling_lister(form: str):
    def operations(layer, batch: int) -> Iterator[OperationSpec]:
        input_shape = get_input_tensors(layer)[0].shape
        sizes, width_parameters = sliding_window_parameters(
            layer, layer.pool_size, layer.strides, input_shape, layer.output.shape
        )
        yield "pooling", {"form": form, **image_shape_parameters(batch, input_shape), **sizes, **width_parameters}

    return operations


def list_global_pooling_operations(layer, batch: int) -> Iterator[OperationSpec]:
    yield "pooling", {"form": "adaptive", **image_shape_parameters(batch, get_input_tensors(layer)[0].shape), "out": 1}


def list_zero_padding_operations(layer, batch: int) -> Iterator[OperationSpec]:
    input_shape, output_shape = get_input_tensors(layer)[0].shape, layer.output.shape
    padding = layer.padding[1][0]
    parameters = {**image_shape_parameters(batch, input_shape), "form": "constant", "padding": padding}
    if any(sides != (padding, padding) for sides in map(tuple, layer.padding)):
        parameters |= {"out_height": output_shape[1], "out_width": output_shape[2]}
    yield "padding", parameters


def list_batch_norm_operations(layer, batch: int) -> Iterator[OperationSpec]:
    yield (
        "normalization",
        {"form": "batch-inference", **image_shape_parameters(batch, get_input_tensors(layer)[0].shape)},
    )


def list_activation_layer_operations(layer, batch: int) -> Iterator[OperationSpec]:
    yield from list_activation_operations(layer.activation.__name__, batch, layer.output.shape)


def list_relu_operations(layer, batch: int) -> Iterator[OperationSpec]:
    yield from list_activation_operations("relu6" if layer.max_value == 6 else "relu", batch, layer.output.shape)


def list_rescaling_operations(layer, batch: int) -> Iterator[OperationSpec]:
    yield "rescaling", {**shape_to_batch_rows_width(batch, layer.output.shape), "from_bytes": False}


def make_merge_lister(kind: str):
    def list_merge_operations(layer, batch: int) -> Iterator[OperationSpec]:
        shapes, out = [input_tensor.shape for input_tensor in get_input_tensors(layer)], layer.output.shape
        form = "same" if all(shape == out for shape in shapes) else "row"
        for _ in shapes[1:]:
            yield kind, {"form": form, **shape_to_batch_rows_width(batch, out)}

    return list_merge_operations


def list_scaled_sum_operations(layer, batch: int) -> Iterator[OperationSpec]:
    shape = shape_to_batch_rows_width(batch, layer.output.shape)
    yield "multiply", {"form": "scalar", **shape}
    yield "add", {"form": "same", **shape}


def list_concatenation_operations(layer, batch: int) -> Iterator[OperationSpec]:
    """Treats all inputs as parts of equal size."""
    parts, parameters = len(get_input_tensors(layer)), shape_to_batch_rows_width(batch, layer.output.shape)
    yield "concatenate", {**parameters, "rows": -(-parameters["rows"] // parts), "parts": parts}


def list_input_operations(layer, batch: int) -> Iterator[OperationSpec]:
    yield "input", {**image_shape_parameters(batch, layer.output.shape), "pinned": False, "bytes": False}


OPERATION_LISTERS = {
    "InputLayer": list_input_operations,
    "Conv2D": list_conv2d_operations,
    "DepthwiseConv2D": list_depthwise_operations,
    "SeparableConv2D": list_separable_operations,
    "MaxPooling2D": make_pooling_lister("max"),
    "AveragePooling2D": make_pooling_lister("avg"),
    "GlobalAveragePooling2D": list_global_pooling_operations,
    "ZeroPadding2D": list_zero_padding_operations,
    "BatchNormalization": list_batch_norm_operations,
    "Activation": list_activation_layer_operations,
    "ReLU": list_relu_operations,
    "Rescaling": list_rescaling_operations,
    "Normalization": list_rescaling_operations,
    "Add": make_merge_lister("add"),
    "Multiply": make_merge_lister("multiply"),
    "Concatenate": list_concatenation_operations,
    "CustomScaleLayer": list_scaled_sum_operations,
}


def list_dense_operations(batch: int, features: int) -> Iterator[OperationSpec]:
    for in_features, out in zip((features, *HIDDEN_WIDTHS), HIDDEN_WIDTHS):
        yield "dense", {"rows": batch, "in": in_features, "out": out, "bias": True}


def list_model_operations(model: Any, batch: int) -> Iterator[OperationSpec]:
    for layer in model.layers:
        if type(layer).__name__ not in LAYERS_WITHOUT_WORK:
            yield from OPERATION_LISTERS[type(layer).__name__](layer, batch)
    output_shape = model.output.shape
    yield "pooling", {"form": "adaptive", **image_shape_parameters(batch, output_shape), "out": 1}
    yield from list_dense_operations(batch, output_shape[3])


def operation_row(kind: str, parameters: dict) -> tuple[str, ...]:
    dtype = "tf32" if kind == "convolution" else "fp32"
    return kind, design.format_parameters(parameters), dtype, "forward", "forward"


def list_settings(name: str, family: str) -> Iterator[tuple[list, Counter]]:
    import keras

    for size in IMAGE_SIZES:
        with keras.device("meta"):
            make = getattr(keras.applications, name)
            model = make(weights=None, include_top=False, input_shape=(size, size, 3))
        for batch in BATCH_SIZES:
            counts = Counter(operation_row(*operation) for operation in list_model_operations(model, batch))
            yield [name, family, "keras", batch, size, "default", "inference", ""], counts


def write(path: Path, columns: list[str], lines: list) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "data" / "seed")
    parser.add_argument("--measured", type=Path, default=ROOT / "data" / "h200",
                        help="folder with rows that count as measured")  # fmt: skip
    parser.add_argument("--rows", type=int, default=4000, help="most rows to add that are not measured yet (4000)")
    options = parser.parse_args()
    measured_keys = {row["key"] for row in rows.read_measured_rows(options.measured)}
    numbers: dict[tuple, int] = {}
    lines, new = [], 0
    for name, family in NETWORKS:
        settings = list(list_settings(name, family))
        distinct_operations = {operation for _, counts in settings for operation in counts}
        unmeasured_operations = {
            operation
            for operation in distinct_operations - set(numbers)
            if " ".join(operation[:4]) not in measured_keys
        }
        if new + len(unmeasured_operations) > options.rows:
            print(f"{name}: {len(unmeasured_operations)} new rows exceed the limit of --rows")
            continue
        new += len(unmeasured_operations)
        for setting, counts in settings:
            numbered_counts = [
                f"{numbers.setdefault(operation, len(numbers))}:{count}" for operation, count in counts.items()
            ]
            lines.append([*setting, " ".join(numbered_counts)])
        print(f"{name}: {len(unmeasured_operations)} new rows of {len(distinct_operations)}", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    write(
        options.out / "operations.csv.gz",
        OPERATION_COLUMNS,
        [[number, *operation] for operation, number in numbers.items()],
    )
    write(options.out / "settings.csv.gz", SETTING_COLUMNS, lines)
    print(f"{len(lines)} settings of {len(numbers)} operations, {new} of them not measured yet, in {options.out}")
    for kind, count in Counter(operation[0] for operation in numbers).most_common():
        print(f"{kind:<14} {count:>6}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
