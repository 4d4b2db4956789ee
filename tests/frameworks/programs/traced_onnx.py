# SPDX-License-Identifier: Apache-2.0
"""Runs a small network four times under ONNX Runtime's own profiler: traced_onnx.py FOLDER. Prints the profile's path."""

import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(7)
weights = [numpy_helper.from_array(random.random((256, 256), dtype="float32") / 256, f"w{i}") for i in range(2)]
nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"], name="/layers/layers.0/fc/MatMul"),
         helper.make_node("Sigmoid", ["a"], ["b"], name="/layers/layers.0/act/Sigmoid"),
         helper.make_node("MatMul", ["b", "w1"], ["y"], name="/layers/layers.1/fc/MatMul")]
given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 256])
result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 256])
model = helper.make_model(helper.make_graph(nodes, "net", [given], [result], weights),
                          opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 9
options = onnxruntime.SessionOptions()
options.enable_profiling = True
options.profile_file_prefix = f"{sys.argv[1]}/profile"
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
for _ in range(4):
    session.run(None, {"x": random.random((64, 256), dtype="float32")})
print(session.end_profiling())
