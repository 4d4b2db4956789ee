// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of convolutions, poolings and matrix products.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "predict/graph/onnx/shapes.h"
#include "predict/graph/onnx/windows.h"

namespace joulemap::predict::onnx {
namespace {

void set_image_output(ShapeInference& at, std::int64_t channels, const std::vector<SlidingWindow>& windows) {
  Sizes sizes = {at.input_sizes(0)[0], channels};
  for (const SlidingWindow& window : windows) sizes.push_back(window.output_size);
  for (std::size_t position = 0; position < at.outputs.size(); ++position) at.set_output_sizes(sizes, position);
}

Status infer_convolution(ShapeInference& at) {
  const Sizes& image = at.input_sizes(0);
  const Sizes& weight = at.input_sizes(1);
  if (image.size() < 3 || weight.size() != image.size())
    return invalid_node("weights with other dimensions than the image");
  const std::int64_t groups = integer_attribute(at.node, "group", 1);
  if (groups < 1 || weight[1] > kMaxElements / groups || weight[1] * groups != image[1]) {
    return invalid_node(
        fmt::format("weights of {} are incompatible with an image of {}", sizes_text(weight), sizes_text(image)));
  }
  const Result<std::vector<SlidingWindow>> windows =
      read_sliding_windows(at.node, image, Sizes(weight.begin() + 2, weight.end()));
  if (!windows) return windows.error();
  set_image_output(at, weight[0], *windows);
  return Done{};
}

Status infer_transposed_convolution(ShapeInference& at) {
  const Sizes& image = at.input_sizes(0);
  const Sizes& weight = at.input_sizes(1);
  if (image.size() < 3 || weight.size() != image.size())
    return invalid_node("weights with other dimensions than the image");
  const std::int64_t groups = integer_attribute(at.node, "group", 1);
  if (groups < 1 || weight[0] != image[1]) return invalid_node("weights with a different number of channels");
  const Result<std::vector<SlidingWindow>> windows =
      read_transposed_sliding_windows(at.node, image, Sizes(weight.begin() + 2, weight.end()));
  if (!windows) return windows.error();
  set_image_output(at, product_of_sizes({weight[1], groups}, 0, 2), *windows);
  return Done{};
}

Status infer_pooling(ShapeInference& at) {
  const Result<std::vector<SlidingWindow>> windows =
      read_sliding_windows(at.node, at.input_sizes(0), integers_attribute(at.node, "kernel_shape"));
  if (!windows) return windows.error();
  set_image_output(at, at.input_sizes(0)[1], *windows);
  if (at.outputs.size() > 1) at.outputs[1].type = DataType::int64;
  return Done{};
}

Status infer_global_pooling(ShapeInference& at) {
  Sizes sizes = at.input_sizes(0);
  if (sizes.size() < 2) return invalid_node("an image without channels");
  std::fill(sizes.begin() + 2, sizes.end(), 1);
  at.set_output_sizes(std::move(sizes));
  return Done{};
}

// As in numpy: a vector is a row on the left and a column on the right, and its dimension vanishes from the result.
Status set_matrix_product_output(ShapeInference& at, Sizes a, Sizes b) {
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  if (a.empty() || b.empty()) return invalid_node("a product with a single number");
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a[a.size() - 1] != b[b.size() - 2])
    return invalid_node(fmt::format("{} and {} cannot be multiplied", sizes_text(a), sizes_text(b)));
  Result<Sizes> sizes = broadcast_sizes(Sizes(a.begin(), a.end() - 2), Sizes(b.begin(), b.end() - 2));
  if (!sizes) return sizes.error();
  if (!row) sizes->push_back(a[a.size() - 2]);
  if (!column) sizes->push_back(b[b.size() - 1]);
  at.set_output_sizes(*std::move(sizes));
  return Done{};
}

Status infer_matmul(ShapeInference& at) { return set_matrix_product_output(at, at.input_sizes(0), at.input_sizes(1)); }

Status infer_integer_matmul(ShapeInference& at) {
  at.outputs[0].type = DataType::int32;
  return infer_matmul(at);
}

// Input 3 is the second factor; inputs 1 and 2 are the scale and zero point of the first.
Status infer_quantized_matmul(ShapeInference& at) {
  return set_matrix_product_output(at, at.input_sizes(0), at.input_sizes(3));
}

Status infer_quantized_convolution(ShapeInference& at) {
  std::swap(at.inputs[1], at.inputs[3]);
  Status status = infer_convolution(at);
  std::swap(at.inputs[1], at.inputs[3]);
  return status;
}

Status infer_fused_matmul(ShapeInference& at) {
  Sizes a = at.input_sizes(0);
  Sizes b = at.input_sizes(1);
  if (integer_attribute(at.node, "transBatchA", 0) != 0 || integer_attribute(at.node, "transBatchB", 0) != 0) {
    return invalid_node("a product with a transposed batch");
  }
  if (integer_attribute(at.node, "transA", 0) != 0 && a.size() >= 2) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (integer_attribute(at.node, "transB", 0) != 0 && b.size() >= 2) std::swap(b[b.size() - 1], b[b.size() - 2]);
  return set_matrix_product_output(at, std::move(a), std::move(b));
}

Status infer_gemm(ShapeInference& at) {
  Sizes a = at.input_sizes(0);
  Sizes b = at.input_sizes(1);
  if (a.size() != 2 || b.size() != 2) return invalid_node("a product of tensors that are not matrices");
  if (integer_attribute(at.node, "transA", 0) != 0) std::swap(a[0], a[1]);
  if (integer_attribute(at.node, "transB", 0) != 0) std::swap(b[0], b[1]);
  return set_matrix_product_output(at, std::move(a), std::move(b));
}

Status infer_quantize(ShapeInference& at) {
  const std::int64_t type = integer_attribute(at.node, "output_dtype", 0);
  at.outputs[0].type = at.has_input(2) ? at.inputs[2]->type : static_cast<DataType>(type != 0 ? type & 0xffff : 2);
  at.set_output_sizes(at.input_sizes(0));
  return Done{};
}

Status infer_dynamic_quantize(ShapeInference& at) {
  at.outputs[0].type = DataType::uint8;
  at.set_output_sizes(at.input_sizes(0));
  at.set_output_sizes({}, 1);
  at.set_output_sizes({}, 2);
  if (at.outputs.size() > 2) at.outputs[2].type = DataType::uint8;
  return Done{};
}

Status infer_dequantize(ShapeInference& at) {
  at.outputs[0].type = at.inputs[1]->type;
  at.set_output_sizes(at.input_sizes(0));
  return Done{};
}

constexpr std::array kConvolutionAndMatmulRules = {
    NodeRule{"Conv", infer_convolution, 2},
    NodeRule{"ConvInteger", infer_convolution, 2},
    NodeRule{"ConvTranspose", infer_transposed_convolution, 2},
    NodeRule{"FusedConv", infer_convolution, 2, "com.microsoft"},
    NodeRule{"QLinearConv", infer_quantized_convolution, 4},
    NodeRule{"MaxPool", infer_pooling, 1},
    NodeRule{"AveragePool", infer_pooling, 1},
    NodeRule{"LpPool", infer_pooling, 1},
    NodeRule{"GlobalAveragePool", infer_global_pooling, 1},
    NodeRule{"GlobalMaxPool", infer_global_pooling, 1},
    NodeRule{"GlobalLpPool", infer_global_pooling, 1},
    NodeRule{"MatMul", infer_matmul, 2},
    NodeRule{"MatMulInteger", infer_integer_matmul, 2},
    NodeRule{"QLinearMatMul", infer_quantized_matmul, 4},
    NodeRule{"FusedMatMul", infer_fused_matmul, 2, "com.microsoft"},
    NodeRule{"Gemm", infer_gemm, 2},
    NodeRule{"FusedGemm", infer_gemm, 2, "com.microsoft"},
    NodeRule{"QuantizeLinear", infer_quantize, 1},
    NodeRule{"DynamicQuantizeLinear", infer_dynamic_quantize, 1},
    NodeRule{"DequantizeLinear", infer_dequantize, 2},
};

}  // namespace

const NodeRule* find_convolution_and_matmul_rule(std::string_view type, std::string_view domain) {
  const auto found = std::find_if(kConvolutionAndMatmulRules.begin(), kConvolutionAndMatmulRules.end(),
                                  [=](const NodeRule& node) { return node.type == type && node.domain == domain; });
  return found == kConvolutionAndMatmulRules.end() ? nullptr : &*found;
}

}  // namespace joulemap::predict::onnx
