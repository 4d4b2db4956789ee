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

void give_image(Inference& at, std::int64_t channels, const std::vector<Window>& windows) {
  Sizes sizes = {at.sizes(0)[0], channels};
  for (const Window& window : windows) sizes.push_back(window.out);
  for (std::size_t place = 0; place < at.outputs.size(); ++place) at.give(sizes, place);
}

Status convolution(Inference& at) {
  const Sizes& image = at.sizes(0);
  const Sizes& weight = at.sizes(1);
  if (image.size() < 3 || weight.size() != image.size()) return misfit("weights of other dimensions than the image");
  const std::int64_t groups = integer_of(at.node, "group", 1);
  if (groups < 1 || weight[1] > kMostElements / groups || weight[1] * groups != image[1]) {
    return misfit(fmt::format("weights of {} for an image of {}", sizes_text(weight), sizes_text(image)));
  }
  const Result<std::vector<Window>> windows = windows_of(at.node, image, Sizes(weight.begin() + 2, weight.end()));
  if (!windows) return windows.error();
  give_image(at, weight[0], *windows);
  return Done{};
}

Status transposed_convolution(Inference& at) {
  const Sizes& image = at.sizes(0);
  const Sizes& weight = at.sizes(1);
  if (image.size() < 3 || weight.size() != image.size()) return misfit("weights of other dimensions than the image");
  const std::int64_t groups = integer_of(at.node, "group", 1);
  if (groups < 1 || weight[0] != image[1]) return misfit("weights of another number of channels");
  const Result<std::vector<Window>> windows =
      transposed_windows_of(at.node, image, Sizes(weight.begin() + 2, weight.end()));
  if (!windows) return windows.error();
  give_image(at, product_of({weight[1], groups}, 0, 2), *windows);
  return Done{};
}

Status pooling(Inference& at) {
  const Result<std::vector<Window>> windows = windows_of(at.node, at.sizes(0), integers_of(at.node, "kernel_shape"));
  if (!windows) return windows.error();
  give_image(at, at.sizes(0)[1], *windows);
  if (at.outputs.size() > 1) at.outputs[1].type = Type::int64;
  return Done{};
}

Status global_pooling(Inference& at) {
  Sizes sizes = at.sizes(0);
  if (sizes.size() < 2) return misfit("an image without channels");
  std::fill(sizes.begin() + 2, sizes.end(), 1);
  at.give(std::move(sizes));
  return Done{};
}

// As in numpy: a vector is a row on the left and a column on the right, and its dimension vanishes from the result.
Status matrix_product(Inference& at, Sizes a, Sizes b) {
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  if (a.empty() || b.empty()) return misfit("a product with a single number");
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a[a.size() - 1] != b[b.size() - 2]) return misfit(fmt::format("{} times {}", sizes_text(a), sizes_text(b)));
  Result<Sizes> sizes = broadcast(Sizes(a.begin(), a.end() - 2), Sizes(b.begin(), b.end() - 2));
  if (!sizes) return sizes.error();
  if (!row) sizes->push_back(a[a.size() - 2]);
  if (!column) sizes->push_back(b[b.size() - 1]);
  at.give(*std::move(sizes));
  return Done{};
}

Status matmul(Inference& at) { return matrix_product(at, at.sizes(0), at.sizes(1)); }

Status integer_matmul(Inference& at) {
  at.outputs[0].type = Type::int32;
  return matmul(at);
}

// Input 3 is the other factor; the inputs in between are quantization scales.
Status quantized_matmul(Inference& at) { return matrix_product(at, at.sizes(0), at.sizes(3)); }

Status quantized_convolution(Inference& at) {
  std::swap(at.inputs[1], at.inputs[3]);
  Status status = convolution(at);
  std::swap(at.inputs[1], at.inputs[3]);
  return status;
}

Status fused_matmul(Inference& at) {
  Sizes a = at.sizes(0);
  Sizes b = at.sizes(1);
  if (integer_of(at.node, "transBatchA", 0) != 0 || integer_of(at.node, "transBatchB", 0) != 0) {
    return misfit("a product with its batch transposed");
  }
  if (integer_of(at.node, "transA", 0) != 0 && a.size() >= 2) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (integer_of(at.node, "transB", 0) != 0 && b.size() >= 2) std::swap(b[b.size() - 1], b[b.size() - 2]);
  return matrix_product(at, std::move(a), std::move(b));
}

Status gemm(Inference& at) {
  Sizes a = at.sizes(0);
  Sizes b = at.sizes(1);
  if (a.size() != 2 || b.size() != 2) return misfit("a product of what is no matrix");
  if (integer_of(at.node, "transA", 0) != 0) std::swap(a[0], a[1]);
  if (integer_of(at.node, "transB", 0) != 0) std::swap(b[0], b[1]);
  return matrix_product(at, std::move(a), std::move(b));
}

Status quantize(Inference& at) {
  const std::int64_t type = integer_of(at.node, "output_dtype", 0);
  at.outputs[0].type = at.has(2) ? at.inputs[2]->type : static_cast<Type>(type != 0 ? type & 0xffff : 2);
  at.give(at.sizes(0));
  return Done{};
}

Status dynamic_quantize(Inference& at) {
  at.outputs[0].type = Type::uint8;
  at.give(at.sizes(0));
  at.give({}, 1);
  at.give({}, 2);
  if (at.outputs.size() > 2) at.outputs[2].type = Type::uint8;
  return Done{};
}

Status dequantize(Inference& at) {
  at.outputs[0].type = at.inputs[1]->type;
  at.give(at.sizes(0));
  return Done{};
}

constexpr std::array kNodes = {
    KnownNode{"Conv", convolution, 2},
    KnownNode{"ConvInteger", convolution, 2},
    KnownNode{"ConvTranspose", transposed_convolution, 2},
    KnownNode{"FusedConv", convolution, 2, "com.microsoft"},
    KnownNode{"QLinearConv", quantized_convolution, 4},
    KnownNode{"MaxPool", pooling, 1},
    KnownNode{"AveragePool", pooling, 1},
    KnownNode{"LpPool", pooling, 1},
    KnownNode{"GlobalAveragePool", global_pooling, 1},
    KnownNode{"GlobalMaxPool", global_pooling, 1},
    KnownNode{"GlobalLpPool", global_pooling, 1},
    KnownNode{"MatMul", matmul, 2},
    KnownNode{"MatMulInteger", integer_matmul, 2},
    KnownNode{"QLinearMatMul", quantized_matmul, 4},
    KnownNode{"FusedMatMul", fused_matmul, 2, "com.microsoft"},
    KnownNode{"Gemm", gemm, 2},
    KnownNode{"FusedGemm", gemm, 2, "com.microsoft"},
    KnownNode{"QuantizeLinear", quantize, 1},
    KnownNode{"DynamicQuantizeLinear", dynamic_quantize, 1},
    KnownNode{"DequantizeLinear", dequantize, 2},
};

}  // namespace

const KnownNode* find_network_node(std::string_view type, std::string_view domain) {
  const auto found = std::find_if(kNodes.begin(), kNodes.end(),
                                  [=](const KnownNode& node) { return node.type == type && node.domain == domain; });
  return found == kNodes.end() ? nullptr : &*found;
}

}  // namespace joulemap::predict::onnx
