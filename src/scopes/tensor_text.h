// SPDX-License-Identifier: Apache-2.0
//
// TensorText: the input tensors of an operation as `report --by tensor` shows them: "[64,3,224,224] [64,3,7,7]". A type
// precedes the shape unless it is float32 or unknown: "int64[64]". The text lists the first kMaxTensors tensors and
// the number of further ones; "()" is an operation without tensors. Live captures write the same text
// (python/joulemap/_torch_shapes.py). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace joulemap::scopes {

class TensorText {
 public:
  static constexpr std::size_t kMaxTensors = 8;

  // `shape`: numbers separated by commas, with or without blanks. Accepts type names of C++, PyTorch, ONNX and XLA.
  void add_tensor(std::string_view type, std::string_view shape);
  std::string text() const;

 private:
  std::string text_;
  std::size_t tensor_count_ = 0;
};

// Parses "Input Dims" and "Input type" of PyTorch's profiler, as written in the file: [[2, 3], [], [[4], [5]]] and
// ["float", "Scalar", "TensorList"]. Returns an empty text for malformed input.
std::string parse_kineto_tensors(std::string_view shapes, std::string_view types);

// Parses "input_type_shape" of ONNX Runtime's profiler: [{"float":[2,3]},{"int64":[]}]. Returns an empty text for
// malformed input.
std::string parse_onnxruntime_tensors(std::string_view types_and_shapes);

// Parses "shape" of TensorFlow's profiler: (float[256,64];;int32[]). Inputs that are not tensors are empty. Returns an
// empty text for malformed input.
std::string parse_tensorflow_tensors(std::string_view types_and_shapes);

// The text of a framework's node, which is an operation of its own: its name, and its input tensors where they are
// known: "net/dense/MatMul_1 [64,3] [3,2]".
std::string append_tensors_to_node(std::string_view node, std::string_view tensors);
// Whether the text contains input tensors, not only the name of a node.
bool has_tensor_text(std::string_view text);

}  // namespace joulemap::scopes
