// SPDX-License-Identifier: Apache-2.0
//
// Sliding windows of convolutions and poolings by dimension, for shape inference and translation to operations. Plain
// data; sizes in elements.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "predict/graph/onnx/onnx_model.h"

namespace joulemap::predict::onnx {

struct SlidingWindow {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t padding_before = 0;  // elements of padding before the image
  std::int64_t padding_after = 0;
  std::int64_t output_size = 0;  // number of positions: the output size
};

// A window for each dimension after batch and channels. `kernel`: kernel sizes, from the weights or, for poolings, from
// an attribute.
Result<std::vector<SlidingWindow>> read_sliding_windows(const Node& node, const Sizes& image, const Sizes& kernel);
Result<std::vector<SlidingWindow>> read_transposed_sliding_windows(const Node& node, const Sizes& image,
                                                                   const Sizes& kernel);

}  // namespace joulemap::predict::onnx
