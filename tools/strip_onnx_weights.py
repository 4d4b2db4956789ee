#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Removes the weights from an ONNX file: names, sizes and types of tensors stay, their values are dropped.

    python3 tools/strip_onnx_weights.py resnet18-full.onnx tests/data/onnx/resnet18.onnx

Values of small tensors stay, because shapes depend on them. tests/data/onnx/resnet18.onnx was made this way, from

    model = torchvision.models.resnet18(weights=None).eval()
    for tensor in [*model.parameters(), *model.buffers()]:  # otherwise equal ones would be stored once
        if tensor.is_floating_point():
            torch.nn.init.uniform_(tensor)
    torch.onnx.export(model, torch.zeros(1, 3, 224, 224), "resnet18-full.onnx", opset_version=17, dynamo=False,
                      input_names=["input"], output_names=["logits"], do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE)
"""

from __future__ import annotations

import argparse
import math

import onnx

TENSOR_DATA_FIELDS = (
    "raw_data",
    "float_data",
    "double_data",
    "int32_data",
    "int64_data",
    "uint64_data",
    "string_data",
    "external_data",
    "data_location",
)
MAX_KEPT_VALUES = 64


def must_keep_values(tensor: onnx.TensorProto) -> bool:
    """Returns whether to keep the values: shapes and settings, i.e. a few integers or a single number of any type."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    size = math.prod(tensor.dims)
    return size <= 1 or (size <= MAX_KEPT_VALUES and tensor.data_type != onnx.TensorProto.FLOAT)


def strip_weights(model: onnx.ModelProto) -> None:
    for tensor in model.graph.initializer:
        if not must_keep_values(tensor):
            for field in TENSOR_DATA_FIELDS:
                tensor.ClearField(field)


def main() -> None:
    parser = argparse.ArgumentParser(description="Removes the weights from an ONNX file.")
    parser.add_argument("full")
    parser.add_argument("stripped")
    arguments = parser.parse_args()
    model = onnx.load(arguments.full, load_external_data=False)
    strip_weights(model)
    with open(arguments.stripped, "wb") as file:
        file.write(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
