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

void set_image_output(ShapeInference& shape_inference, std::int64_t channels,
                      const std::vector<SlidingWindow>& windows) {
  Sizes sizes = {shape_inference.input_sizes(0)[0], channels};
  for (const SlidingWindow& window : windows) sizes.push_back(window.output_size);
  for (std::size_t position = 0; position < shape_inference.outputs.size(); ++position)
    shape_inference.set_output_sizes(sizes, position);
}

Status infer_convolution(ShapeInference& shape_inference) {
  const Sizes& image = shape_inference.input_sizes(0);
  const Sizes& weight = shape_inference.input_sizes(1);
  if (image.size() < 3 || weight.size() != image.size())
    return invalid_node("weights with other dimensions than the image");
  const std::int64_t groups = integer_attribute(shape_inference.node, "group", 1);
  if (groups < 1 || weight[1] > kMaxElements / groups || weight[1] * groups != image[1]) {
    return invalid_node(
        fmt::format("weights of {} are incompatible with an image of {}", sizes_text(weight), sizes_text(image)));
  }
  const Result<std::vector<SlidingWindow>> windows =
      read_sliding_windows(shape_inference.node, image, Sizes(weight.begin() + 2, weight.end()));
  if (!windows) return windows.error();
  set_image_output(shape_inference, weight[0], *windows);
  return Done{};
}

Status infer_transposed_convolution(ShapeInference& shape_inference) {
  const Sizes& image = shape_inference.input_sizes(0);
  const Sizes& weight = shape_inference.input_sizes(1);
  if (image.size() < 3 || weight.size() != image.size())
    return invalid_node("weights with other dimensions than the image");
  const std::int64_t groups = integer_attribute(shape_inference.node, "group", 1);
  if (groups < 1 || weight[0] != image[1]) return invalid_node("weights with a different number of channels");
  const Result<std::vector<SlidingWindow>> windows =
      read_transposed_sliding_windows(shape_inference.node, image, Sizes(weight.begin() + 2, weight.end()));
  if (!windows) return windows.error();
  set_image_output(shape_inference, product_of_sizes({weight[1], groups}, 0, 2), *windows);
  return Done{};
}

Status infer_pooling(ShapeInference& shape_inference) {
  const Result<std::vector<SlidingWindow>> windows = read_sliding_windows(
      shape_inference.node, shape_inference.input_sizes(0), integers_attribute(shape_inference.node, "kernel_shape"));
  if (!windows) return windows.error();
  set_image_output(shape_inference, shape_inference.input_sizes(0)[1], *windows);
  if (shape_inference.outputs.size() > 1) shape_inference.outputs[1].type = DataType::int64;
  return Done{};
}

Status infer_global_pooling(ShapeInference& shape_inference) {
  Sizes sizes = shape_inference.input_sizes(0);
  if (sizes.size() < 2) return invalid_node("an image without channels");
  std::fill(sizes.begin() + 2, sizes.end(), 1);
  shape_inference.set_output_sizes(std::move(sizes));
  return Done{};
}

// As in numpy: a vector is a row on the left and a column on the right, and its dimension vanishes from the result.
Status set_matrix_product_output(ShapeInference& shape_inference, Sizes left_sizes, Sizes right_sizes) {
  const bool row = left_sizes.size() == 1;
  const bool column = right_sizes.size() == 1;
  if (left_sizes.empty() || right_sizes.empty()) return invalid_node("a product with a single number");
  if (row) left_sizes.insert(left_sizes.begin(), 1);
  if (column) right_sizes.push_back(1);
  if (left_sizes[left_sizes.size() - 1] != right_sizes[right_sizes.size() - 2])
    return invalid_node(fmt::format("{} and {} cannot be multiplied", sizes_text(left_sizes), sizes_text(right_sizes)));
  Result<Sizes> sizes = broadcast_sizes(Sizes(left_sizes.begin(), left_sizes.end() - 2),
                                        Sizes(right_sizes.begin(), right_sizes.end() - 2));
  if (!sizes) return sizes.error();
  if (!row) sizes->push_back(left_sizes[left_sizes.size() - 2]);
  if (!column) sizes->push_back(right_sizes[right_sizes.size() - 1]);
  shape_inference.set_output_sizes(*std::move(sizes));
  return Done{};
}

Status infer_matmul(ShapeInference& shape_inference) {
  return set_matrix_product_output(shape_inference, shape_inference.input_sizes(0), shape_inference.input_sizes(1));
}

Status infer_integer_matmul(ShapeInference& shape_inference) {
  shape_inference.outputs[0].type = DataType::int32;
  return infer_matmul(shape_inference);
}

// Input 3 is the second factor; inputs 1 and 2 are the scale and zero point of the first.
Status infer_quantized_matmul(ShapeInference& shape_inference) {
  return set_matrix_product_output(shape_inference, shape_inference.input_sizes(0), shape_inference.input_sizes(3));
}

Status infer_quantized_convolution(ShapeInference& shape_inference) {
  std::swap(shape_inference.inputs[1], shape_inference.inputs[3]);
  Status status = infer_convolution(shape_inference);
  std::swap(shape_inference.inputs[1], shape_inference.inputs[3]);
  return status;
}

Status infer_fused_matmul(ShapeInference& shape_inference) {
  Sizes left_sizes = shape_inference.input_sizes(0);
  Sizes right_sizes = shape_inference.input_sizes(1);
  if (integer_attribute(shape_inference.node, "transBatchA", 0) != 0 ||
      integer_attribute(shape_inference.node, "transBatchB", 0) != 0) {
    return invalid_node("a product with a transposed batch");
  }
  if (integer_attribute(shape_inference.node, "transA", 0) != 0 && left_sizes.size() >= 2)
    std::swap(left_sizes[left_sizes.size() - 1], left_sizes[left_sizes.size() - 2]);
  if (integer_attribute(shape_inference.node, "transB", 0) != 0 && right_sizes.size() >= 2)
    std::swap(right_sizes[right_sizes.size() - 1], right_sizes[right_sizes.size() - 2]);
  return set_matrix_product_output(shape_inference, std::move(left_sizes), std::move(right_sizes));
}

Status infer_gemm(ShapeInference& shape_inference) {
  Sizes left_sizes = shape_inference.input_sizes(0);
  Sizes right_sizes = shape_inference.input_sizes(1);
  if (left_sizes.size() != 2 || right_sizes.size() != 2)
    return invalid_node("a product of tensors that are not matrices");
  if (integer_attribute(shape_inference.node, "transA", 0) != 0) std::swap(left_sizes[0], left_sizes[1]);
  if (integer_attribute(shape_inference.node, "transB", 0) != 0) std::swap(right_sizes[0], right_sizes[1]);
  return set_matrix_product_output(shape_inference, std::move(left_sizes), std::move(right_sizes));
}

Status infer_quantize(ShapeInference& shape_inference) {
  const std::int64_t type = integer_attribute(shape_inference.node, "output_dtype", 0);
  shape_inference.outputs[0].type = shape_inference.has_input(2) ? shape_inference.inputs[2]->type
                                                                 : static_cast<DataType>(type != 0 ? type & 0xffff : 2);
  shape_inference.set_output_sizes(shape_inference.input_sizes(0));
  return Done{};
}

Status infer_dynamic_quantize(ShapeInference& shape_inference) {
  shape_inference.outputs[0].type = DataType::uint8;
  shape_inference.set_output_sizes(shape_inference.input_sizes(0));
  shape_inference.set_output_sizes({}, 1);
  shape_inference.set_output_sizes({}, 2);
  if (shape_inference.outputs.size() > 2) shape_inference.outputs[2].type = DataType::uint8;
  return Done{};
}

Status infer_dequantize(ShapeInference& shape_inference) {
  shape_inference.outputs[0].type = shape_inference.inputs[1]->type;
  shape_inference.set_output_sizes(shape_inference.input_sizes(0));
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
  const auto matching_rule =
      std::find_if(kConvolutionAndMatmulRules.begin(), kConvolutionAndMatmulRules.end(),
                   [=](const NodeRule& node) { return node.type == type && node.domain == domain; });
  return matching_rule == kConvolutionAndMatmulRules.end() ? nullptr : &*matching_rule;
}

}  // namespace joulemap::predict::onnx
