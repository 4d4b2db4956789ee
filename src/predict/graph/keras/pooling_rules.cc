// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

struct Sides {
  std::size_t first = 1;  // index of the first spatial dimension
  std::size_t channels = 0;
};

Sides sides_of(LayerCall& call, std::size_t count) {
  call.need_dimensions(count + 2, count + 2);
  return call.is_channels_last() ? Sides{1, count + 1} : Sides{2, 1};
}

// Kind::pooling has two dimensions, so the depth is folded into the height, with the same number of elements and sums.
SlidingWindow folded(const std::vector<SlidingWindow>& windows) {
  if (windows.size() == 1) return {};
  SlidingWindow height = windows[windows.size() - 2];
  if (windows.size() == 2) return height;
  const SlidingWindow& depth = windows.front();
  height.in = saturating_product(height.in, depth.in);
  height.kernel = saturating_product(height.kernel, depth.kernel);
  height.stride = saturating_product(height.stride, depth.stride);
  height.out = saturating_product(height.out, depth.out);
  height.is_even = false;
  return height;
}

void emit_pooling(LayerCall& call, std::string_view form, std::int64_t batch, std::int64_t channels,
                  const std::vector<SlidingWindow>& windows) {
  const SlidingWindow height = folded(windows);
  const SlidingWindow& width = windows.back();
  Parameters parameters{{"batch", batch},           {"channels", channels},    {"height", height.in},
                        {"width", width.in},        {"kernel", height.kernel}, {"stride", height.stride},
                        {"padding", height.padding}};
  if (width.kernel != height.kernel) parameters.set("kernel_width", width.kernel);
  if (width.stride != height.stride) parameters.set("stride_width", width.stride);
  if (width.padding != height.padding) parameters.set("padding_width", width.padding);
  if (!height.is_even || !width.is_even) {
    parameters.set("out_height", height.out);
    parameters.set("out_width", width.out);
  }
  call.emit(Kind::pooling, form, std::move(parameters));
}

enum class Form : std::uint8_t { max, avg };

template <Form kForm, std::size_t kSides>
std::vector<Shape> pooling(LayerCall& call) {
  const Sides sides = sides_of(call, kSides);
  Shape out = call.shape();
  if (out.size() != kSides + 2) return {out};
  const std::vector<std::int64_t> kernel = call.factors("pool_size", kSides, 2);
  const bool has_strides = call.option("strides") != nullptr;
  const std::vector<std::int64_t> stride = has_strides ? call.factors("strides", kSides, 1) : kernel;
  const Padding padding = call.padding();
  std::vector<SlidingWindow> windows;
  for (std::size_t i = 0; i < kSides; ++i) {
    windows.push_back(sliding_window(out[sides.first + i], kernel[i], stride[i], 1, padding));
    if (windows.back().out < 1) {
      call.fail(fmt::format("its window of {} does not fit into {}", kernel[i], out[sides.first + i]),
                "set a larger input with --input");
    }
    out[sides.first + i] = windows.back().out;
  }
  emit_pooling(call, kForm == Form::max ? "max" : "avg", out.front(), out[sides.channels], windows);
  return {std::move(out)};
}

// Maximum and mean have the same form: each channel is reduced to one element.
template <std::size_t kSides>
std::vector<Shape> global_pooling(LayerCall& call) {
  const Sides sides = sides_of(call, kSides);
  const Shape in = call.shape();
  if (in.size() != kSides + 2) return {in};
  const std::size_t last = sides.first + kSides - 1;
  call.emit(Kind::pooling, "adaptive",
            {{"batch", in.front()},
             {"channels", in[sides.channels]},
             {"height", elements(in, sides.first, last)},
             {"width", in[last]},
             {"out", 1}});
  if (!call.flag("keepdims", false)) return {{in.front(), in[sides.channels]}};
  Shape out = in;
  std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(sides.first), kSides, 1);
  return {std::move(out)};
}

// Pooling to a given output size, which may be more than one element.
template <std::size_t kSides>
std::vector<Shape> adaptive_pooling(LayerCall& call) {
  const Sides sides = sides_of(call, kSides);
  Shape out = call.shape();
  if (out.size() != kSides + 2) return {out};
  const std::vector<std::int64_t> target = call.factors("output_size", kSides, 1);
  const std::size_t last = sides.first + kSides - 1;
  const std::int64_t height = elements(out, sides.first, last);
  const std::int64_t width = out[last];
  for (std::size_t i = 0; i < kSides; ++i) out[sides.first + i] = target[i];
  call.emit(Kind::pooling, "adaptive",
            {{"batch", out.front()},
             {"channels", out[sides.channels]},
             {"height", height},
             {"width", width},
             {"out", target.back()},
             {"out_height", elements(out, sides.first, last)},
             {"out_width", target.back()}});
  return {std::move(out)};
}

constexpr NamedRule kRules[] = {
    {"MaxPooling1D", pooling<Form::max, 1>},
    {"MaxPooling2D", pooling<Form::max, 2>},
    {"MaxPooling3D", pooling<Form::max, 3>},
    {"MaxPool1D", pooling<Form::max, 1>},
    {"MaxPool2D", pooling<Form::max, 2>},
    {"MaxPool3D", pooling<Form::max, 3>},
    {"AveragePooling1D", pooling<Form::avg, 1>},
    {"AveragePooling2D", pooling<Form::avg, 2>},
    {"AveragePooling3D", pooling<Form::avg, 3>},
    {"AvgPool1D", pooling<Form::avg, 1>},
    {"AvgPool2D", pooling<Form::avg, 2>},
    {"AvgPool3D", pooling<Form::avg, 3>},
    {"GlobalAveragePooling1D", global_pooling<1>},
    {"GlobalAveragePooling2D", global_pooling<2>},
    {"GlobalAveragePooling3D", global_pooling<3>},
    {"GlobalAvgPool2D", global_pooling<2>},
    {"GlobalMaxPooling1D", global_pooling<1>},
    {"GlobalMaxPooling2D", global_pooling<2>},
    {"GlobalMaxPooling3D", global_pooling<3>},
    {"GlobalMaxPool2D", global_pooling<2>},
    {"AdaptiveAveragePooling1D", adaptive_pooling<1>},
    {"AdaptiveAveragePooling2D", adaptive_pooling<2>},
    {"AdaptiveAveragePooling3D", adaptive_pooling<3>},
    {"AdaptiveMaxPooling1D", adaptive_pooling<1>},
    {"AdaptiveMaxPooling2D", adaptive_pooling<2>},
    {"AdaptiveMaxPooling3D", adaptive_pooling<3>},
};

}  // namespace

std::span<const NamedRule> pooling_rules() { return kRules; }

}  // namespace joulemap::predict::keras
