// SPDX-License-Identifier: Apache-2.0
//
// Classifies the operations of frameworks and the kernels of their libraries by what they compute, so that the same work
// is found under all its names: aten::conv2d, conv_general_dilated, Conv2D and sm80_xmma_fprop_implicit_gemm are
// convolutions. Also reads the precision of a kernel from its name. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace joulemap::scopes {

enum class OperationKind : std::uint8_t {
  matmul,
  convolution,
  attention,
  normalization,
  softmax,
  pooling,
  embedding,
  loss,
  reduction,
  elementwise,
  layout,  // conversion of the memory layout around an operation of a library
  copy,    // within the device: contiguous, concatenation, conversion of types
  host_copy,
  optimizer,
  communication,
  unknown,
};
inline constexpr std::array<std::string_view, 16> kOperationKindNames = {
    "matmul",    "convolution", "attention",     "normalization", "softmax",           "pooling",
    "embedding", "loss",        "reduction",     "elementwise",   "layout conversion", "copy",
    "host copy", "optimizer",   "communication", "other"};
constexpr std::string_view to_string(OperationKind kind) { return kOperationKindNames[static_cast<std::size_t>(kind)]; }

// Of an operation of PyTorch (also a node of its autograd graph), JAX, TensorFlow or ONNX.
OperationKind kind_of_operation(std::string_view operation);
// Of a kernel, demangled or not, or of a copy by its direction.
OperationKind kind_of_kernel(std::string_view kernel);
// Kernels that convert a layout, copy to or from the host, or communicate do so in any operation; otherwise the kind of
// the operation, if it is known.
OperationKind kind_of_work(std::string_view operation, std::string_view kernel);

// The type of the factors of a product: "float32", "tf32", "bfloat16" ...; empty if the name does not contain it.
std::string_view precision_of_kernel(std::string_view kernel);

}  // namespace joulemap::scopes
