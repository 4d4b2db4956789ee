// SPDX-License-Identifier: Apache-2.0
//
// Rules for layers that change image sizes: padding, cropping, upsampling, resizing.
#include <fmt/format.h>

#include <algorithm>

#include "predict/graph/keras/layer_rules.h"

namespace joulemap::predict::keras {
namespace {

using Pair = std::pair<std::int64_t, std::int64_t>;  // counts before and after

// Parses a padding or cropping: 2 for all sides, [1, 2] for each side, [[1, 2], [3, 4]] for before and after each side.
// With a single side, [1, 2] is before and after.
std::vector<Pair> pairs(LayerCall& call, std::string_view key, std::size_t sides, std::int64_t otherwise) {
  std::vector<Pair> found;
  const auto checked = [&](const DocumentValue& value) {
    const std::int64_t number = value.integer().value_or(-1);
    if (number < 0 || number > kMaxFactor) call.fail(fmt::format("its {} is not between 0 and {}", key, kMaxFactor));
    return std::clamp<std::int64_t>(number, 0, kMaxFactor);
  };
  const DocumentValue* const value = call.option(key);
  const DocumentValue::Array* const list = value == nullptr ? nullptr : value->array();
  if (list == nullptr) {
    const std::int64_t same = value == nullptr ? otherwise : checked(*value);
    return std::vector<Pair>(sides, {same, same});
  }
  if (sides == 1 && list->size() == 2) return {{checked(list->front()), checked(list->back())}};
  for (const DocumentValue& each : *list) {
    if (found.size() == sides) break;
    const DocumentValue::Array* const both = each.array();
    if (both == nullptr) {
      found.emplace_back(checked(each), checked(each));
    } else if (both->size() == 2) {
      found.emplace_back(checked(both->front()), checked(both->back()));
    }
  }
  if (found.size() != sides) call.fail(fmt::format("its {} does not have a value for each of {} sides", key, sides));
  found.resize(sides);
  return found;
}

struct Resized {
  Shape in;
  Shape out;
  std::size_t first = 1;  // index of the first spatial dimension
  std::size_t channels = 0;
};

Resized begin(LayerCall& call, std::size_t sides, bool is_channels_last) {
  call.need_dimensions(sides + 2, sides + 2);
  Resized resized;
  resized.in = call.shape();
  resized.in.resize(sides + 2, 1);
  resized.out = resized.in;
  resized.first = is_channels_last ? 1 : 2;
  resized.channels = is_channels_last ? sides + 1 : 1;
  return resized;
}

void emit(LayerCall& call, Kind kind, std::string_view form, const Resized& resized, std::int64_t padding) {
  const std::size_t sides = resized.in.size() - 2;
  const std::size_t last = resized.first + sides - 1;
  const std::int64_t height = elements(resized.in, resized.first, last);
  const std::int64_t out_height = elements(resized.out, resized.first, last);
  Parameters parameters{{"batch", resized.in.front()},
                        {"channels", resized.in[resized.channels]},
                        {"height", height},
                        {"width", resized.in[last]}};
  if (kind == Kind::padding) {
    parameters.set("padding", padding);
  } else {
    parameters.set("out", resized.out[last]);
  }
  const bool is_even = kind == Kind::padding
                           ? out_height == height + 2 * padding && resized.out[last] == resized.in[last] + 2 * padding
                           : out_height == resized.out[last];
  if (!is_even) {
    parameters.set("out_height", out_height);
    parameters.set("out_width", resized.out[last]);
  }
  call.emit(kind, form, std::move(parameters));
}

template <std::size_t kSides>
std::vector<Shape> zero_padding(LayerCall& call) {
  const std::vector<Pair> padded = pairs(call, "padding", kSides, 1);
  Resized resized = begin(call, kSides, call.is_channels_last());
  for (std::size_t i = 0; i < kSides; ++i) resized.out[resized.first + i] += padded[i].first + padded[i].second;
  emit(call, Kind::padding, "constant", resized, padded.back().first);
  return {resized.out};
}

// Cropping copies the part that remains.
template <std::size_t kSides>
std::vector<Shape> cropping(LayerCall& call) {
  const std::vector<Pair> cropped = pairs(call, "cropping", kSides, 1);
  Resized resized = begin(call, kSides, call.is_channels_last());
  for (std::size_t i = 0; i < kSides; ++i) {
    std::int64_t& side = resized.out[resized.first + i];
    side -= cropped[i].first + cropped[i].second;
    if (side < 1) call.fail("it crops the whole input", "set a larger input with --input");
    side = std::max<std::int64_t>(side, 1);
  }
  call.elementwise(Kind::reshape, "gather", resized.out);
  return {resized.out};
}

std::string_view resize_form(const std::string& interpolation) {
  return interpolation.empty() || interpolation == "nearest" ? "nearest" : "bilinear";
}

template <std::size_t kSides>
std::vector<Shape> upsampling(LayerCall& call) {
  const std::vector<std::int64_t> factor = call.factors("size", kSides, 2);
  Resized resized = begin(call, kSides, call.is_channels_last());
  for (std::size_t i = 0; i < kSides; ++i) {
    resized.out[resized.first + i] = saturating_product(resized.out[resized.first + i], factor[i]);
  }
  emit(call, Kind::resize, resize_form(call.word("interpolation")), resized, 0);
  return {resized.out};
}

std::vector<Shape> resizing(LayerCall& call) {
  if (call.shape().size() == 3 && !call.inputs.empty()) {  // an image without a batch
    Shape& sizes = call.inputs.front().tensor.sizes;
    sizes.insert(sizes.begin(), 1);
  }
  Resized resized = begin(call, 2, call.is_channels_last());
  resized.out[resized.first] = call.size("height");
  resized.out[resized.first + 1] = call.size("width");
  const std::string interpolation = call.word("interpolation");
  emit(call, Kind::resize, interpolation.empty() ? "bilinear" : resize_form(interpolation), resized, 0);
  return {resized.out};
}

std::vector<Shape> center_crop(LayerCall& call) {
  Resized resized = begin(call, 2, call.is_channels_last());
  resized.out[resized.first] = call.size("height");
  resized.out[resized.first + 1] = call.size("width");
  call.elementwise(Kind::reshape, "gather", resized.out);
  return {resized.out};
}

// tf.image.resize and keras.ops.image.resize, whose size is a list.
std::vector<Shape> resize_function(LayerCall& call) {
  Resized resized = begin(call, 2, call.is_channels_last());
  const std::vector<std::int64_t> size = call.axes("size");
  if (size.size() != 2 || size.front() < 1 || size.back() < 1) call.fail("its size is not two numbers");
  if (size.size() == 2) {
    resized.out[resized.first] = std::max<std::int64_t>(1, size.front());
    resized.out[resized.first + 1] = std::max<std::int64_t>(1, size.back());
  }
  const std::string method = call.word("interpolation") + call.word("method");
  emit(call, Kind::resize, method.empty() ? "bilinear" : resize_form(method), resized, 0);
  return {resized.out};
}

constexpr NamedRule kRules[] = {
    {"ZeroPadding1D", zero_padding<1>}, {"ZeroPadding2D", zero_padding<2>},
    {"ZeroPadding3D", zero_padding<3>}, {"Cropping1D", cropping<1>},
    {"Cropping2D", cropping<2>},        {"Cropping3D", cropping<3>},
    {"UpSampling1D", upsampling<1>},    {"UpSampling2D", upsampling<2>},
    {"UpSampling3D", upsampling<3>},    {"Resizing", resizing},
    {"CenterCrop", center_crop},        {"RandomCrop", center_crop},
    {"resize", resize_function},        {"resizev2", resize_function},
};

}  // namespace

std::span<const NamedRule> image_rules() { return kRules; }

}  // namespace joulemap::predict::keras
