# SPDX-License-Identifier: Apache-2.0
"""Runs a small network with ONNX Runtime: onnx_network.py MODEL.onnx [RUNS]. Node names follow PyTorch's exporter.
The last line is the sum of the outputs of the last run."""

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def make(path, width=256, layers=3):
    random = np.random.default_rng(7)
    nodes, weights, last_output_name = [], [], "x"
    for i in range(layers):
        weights.append(numpy_helper.from_array(random.random((width, width), dtype="float32") / width, f"w{i}"))
        nodes.append(
            helper.make_node("MatMul", [last_output_name, f"w{i}"], [f"m{i}"], name=f"/layers/layers.{i}/fc/MatMul")
        )
        nodes.append(helper.make_node("Sigmoid", [f"m{i}"], [f"s{i}"], name=f"/layers/layers.{i}/act/Sigmoid"))
        last_output_name = f"s{i}"
    input_info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, width])
    result = helper.make_tensor_value_info(last_output_name, TensorProto.FLOAT, [None, width])
    model = helper.make_model(
        helper.make_graph(nodes, "net", [input_info], [result], weights), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 9
    onnx.save(model, path)


path, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 50
make(path)
session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
x = np.random.default_rng(8).random((64, 256), dtype="float32")
for _ in range(runs):
    (y,) = session.run(None, {"x": x})
print(float(y.sum()).hex())
