// SPDX-License-Identifier: Apache-2.0
//
// TensorText: what an operation is given, as `report --by tensor` shows it: "[64,3,224,224] [64,3,7,7]". A type stands in
// front unless it is float32 or not told: "int64[64]". Of many tensors the first kMostTensors are told, and how many there
// are besides; "()" is an operation that is given none. A live capture writes the same
// (python/joulemap/_torch_shapes.py). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace joulemap::ingest {

class TensorText {
 public:
  static constexpr std::size_t kMostTensors = 8;

  // `shape`: numbers with commas between them, with or without blanks. Types of C++, PyTorch, ONNX and XLA are known.
  void add(std::string_view type, std::string_view shape);
  std::string text() const;

 private:
  std::string text_;
  std::size_t count_ = 0;
};

// From "Input Dims" and "Input type" of PyTorch's profiler, as they stand in the file: [[2, 3], [], [[4], [5]]] and
// ["float", "Scalar", "TensorList"]. Empty where they make no sense.
std::string tensors_of_kineto(std::string_view shapes, std::string_view types);

// From "input_type_shape" of ONNX Runtime's profiler: [{"float":[2,3]},{"int64":[]}].
std::string tensors_of_onnxruntime(std::string_view types_and_shapes);

}  // namespace joulemap::ingest
