// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/windows.h"

#include <algorithm>

#include "predict/graph/graph.h"

namespace joulemap::predict::onnx {
namespace {

// Limit of kernels, strides and paddings: larger ones would overflow sizes.
constexpr std::int64_t kMaxWindowParameter = 1 << 20;

Error invalid_window_error(const char* error_message) { return {ErrorCode::malformed, error_message, ""}; }

Result<std::vector<SlidingWindow>> read_window_attributes(const Node& node, const Sizes& image, const Sizes& kernel) {
  if (image.size() < 3 || kernel.size() != image.size() - 2)
    return invalid_window_error("a window with other dimensions than the image");
  const Sizes strides = integers_attribute(node, "strides");
  const Sizes dilations = integers_attribute(node, "dilations");
  const Sizes pads = integers_attribute(node, "pads");
  std::vector<SlidingWindow> windows(kernel.size());
  for (std::size_t i = 0; i < windows.size(); ++i) {
    SlidingWindow& window = windows[i];
    window.kernel = kernel[i];
    if (i < strides.size()) window.stride = strides[i];
    if (i < dilations.size()) window.dilation = dilations[i];
    if (i < pads.size()) window.padding_before = pads[i];
    if (i + kernel.size() < pads.size()) window.padding_after = pads[i + kernel.size()];
    for (const std::int64_t number : {window.kernel, window.stride, window.dilation}) {
      if (number < 1 || number > kMaxWindowParameter)
        return invalid_window_error("an impossible kernel, stride or dilation");
    }
    if (std::max(window.padding_before, window.padding_after) > kMaxWindowParameter ||
        std::min(window.padding_before, window.padding_after) < -kMaxWindowParameter) {
      return invalid_window_error("an impossible padding");
    }
  }
  return windows;
}

}  // namespace

Result<std::vector<SlidingWindow>> read_sliding_windows(const Node& node, const Sizes& image, const Sizes& kernel) {
  Result<std::vector<SlidingWindow>> windows = read_window_attributes(node, image, kernel);
  if (!windows) return windows;
  const std::string_view auto_pad = text_attribute(node, "auto_pad", "NOTSET");
  const bool rounds_up = integer_attribute(node, "ceil_mode", 0) != 0;
  for (std::size_t i = 0; i < windows->size(); ++i) {
    SlidingWindow& window = (*windows)[i];
    const std::int64_t size = image[i + 2];
    const std::int64_t kernel_extent = window.dilation * (window.kernel - 1) + 1;
    if (auto_pad == "VALID") window.padding_before = window.padding_after = 0;
    if (auto_pad.substr(0, 4) == "SAME") {
      window.output_size = (size + window.stride - 1) / window.stride;
      const std::int64_t total_padding =
          std::max<std::int64_t>(0, (window.output_size - 1) * window.stride + kernel_extent - size);
      window.padding_before = auto_pad == "SAME_LOWER" ? total_padding - total_padding / 2 : total_padding / 2;
      window.padding_after = total_padding - window.padding_before;
      continue;
    }
    const std::int64_t max_window_offset = size + window.padding_before + window.padding_after - kernel_extent;
    if (max_window_offset < 0) return invalid_window_error("a kernel larger than the image");
    window.output_size = (max_window_offset + (rounds_up ? window.stride - 1 : 0)) / window.stride + 1;
    // The last position must begin within the image, as in PyTorch and newer opsets.
    if (rounds_up && (window.output_size - 1) * window.stride >= size + window.padding_before) --window.output_size;
  }
  return windows;
}

Result<std::vector<SlidingWindow>> read_transposed_sliding_windows(const Node& node, const Sizes& image,
                                                                   const Sizes& kernel) {
  Result<std::vector<SlidingWindow>> windows = read_window_attributes(node, image, kernel);
  if (!windows) return windows;
  const Sizes output_paddings = integers_attribute(node, "output_padding");
  const Sizes output_shape = integers_attribute(node, "output_shape");
  const bool has_same_padding = text_attribute(node, "auto_pad", "NOTSET").substr(0, 4) == "SAME";
  for (std::size_t i = 0; i < windows->size(); ++i) {
    SlidingWindow& window = (*windows)[i];
    const std::int64_t size = image[i + 2];
    const std::int64_t kernel_extent = window.dilation * (window.kernel - 1) + 1;
    if (size > kMaxElements / window.stride) return invalid_window_error("an impossible size");
    window.output_size = window.stride * (size - 1) + kernel_extent - window.padding_before - window.padding_after +
                         (i < output_paddings.size() ? output_paddings[i] : 0);
    if (has_same_padding) window.output_size = size * window.stride;
    if (output_shape.size() >= windows->size())
      window.output_size = output_shape[output_shape.size() - windows->size() + i];
    if (window.output_size < 0 || window.output_size > kMaxElements) return invalid_window_error("an impossible size");
  }
  return windows;
}

}  // namespace joulemap::predict::onnx
