// SPDX-License-Identifier: Apache-2.0
//
// Translates convolutions, poolings, norms, paddings and resizing of images with one, two or three dimensions.
#include <algorithm>

#include "predict/graph/onnx/to_operations.h"
#include "predict/graph/onnx/windows.h"

namespace joulemap::predict::onnx {
namespace {

// Sizes of a batch of images. The height is 1 for one-dimensional images, and depth x height for three-dimensional
// ones.
struct Image {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;
};

Image image_of(const Sizes& sizes) {
  Image image;
  if (!sizes.empty()) image.batch = sizes[0];
  if (sizes.size() >= 2) image.channels = sizes[1];
  if (sizes.size() >= 3) image.width = sizes.back();
  if (sizes.size() >= 4) image.height = product_of(sizes, 2, sizes.size() - 1);
  return image;
}

Parameters parameters_of(const Image& image) {
  return {{"batch", image.batch}, {"channels", image.channels}, {"height", image.height}, {"width", image.width}};
}

std::int64_t places(std::int64_t size, const SlidingWindow& window) {
  return (size + 2 * window.padding_before - window.dilation * (window.kernel - 1) - 1) / window.stride + 1;
}

// Sets kernel, stride, padding and dilation. Those of the width are set only if they differ from the height's, and
// output sizes only if they do not follow from the other parameters.
void set_windows(Parameters& parameters, const SlidingWindow& high, const SlidingWindow& wide, const Image& image,
                 bool dilates) {
  parameters.set("kernel", high.kernel);
  parameters.set("stride", high.stride);
  parameters.set("padding", high.padding_before);
  if (dilates) parameters.set("dilation", high.dilation);
  if (wide.kernel != high.kernel) parameters.set("kernel_width", wide.kernel);
  if (wide.stride != high.stride) parameters.set("stride_width", wide.stride);
  if (wide.padding_before != high.padding_before) parameters.set("padding_width", wide.padding_before);
  if (dilates && wide.dilation != high.dilation) parameters.set("dilation_width", wide.dilation);
  if (places(image.height, high) == high.out && places(image.width, wide) == wide.out) return;
  parameters.set("out_height", high.out);
  parameters.set("out_width", wide.out);
}

// Whether images are channels-last: a transposition precedes, as exporters of TensorFlow write it.
bool is_channels_last(const SizedStep& at) {
  const ProgramStep* const step = at.producer(0);
  return step != nullptr && step->type == "Transpose" && integers_attribute(*step->node, "perm") == Sizes{0, 3, 1, 2};
}

Translations convolution(const SizedStep& at, bool transposed) {
  const Sizes& sizes = at.in(0);
  const Sizes& weight = at.in(1);
  const Sizes kernel(weight.begin() + 2, weight.end());
  const Result<std::vector<SlidingWindow>> windows =
      transposed ? transposed_windows_of(*at.step.node, sizes, kernel) : windows_of(*at.step.node, sizes, kernel);
  if (!windows || windows->empty() || windows->size() > 3) return std::nullopt;
  const bool deep = windows->size() == 3;
  const SlidingWindow wide = windows->back();
  const SlidingWindow high = windows->size() == 1 ? SlidingWindow{.out = 1} : (*windows)[windows->size() - 2];
  Image image{.batch = sizes[0],
              .channels = sizes[1],
              .height = windows->size() == 1 ? 1 : sizes[sizes.size() - 2],
              .width = sizes.back()};
  Parameters parameters = {{"batch", image.batch},
                           {"channels", image.channels},
                           {"out", at.out()[1]},
                           {"height", image.height},
                           {"width", image.width}};
  set_windows(parameters, high, wide, image, true);
  parameters.set("groups", integer_attribute(*at.step.node, "group", 1));
  parameters.set("bias", at.has_input(2) ? 1 : 0);
  if (deep) {
    parameters.set("depth", sizes[2]);
    parameters.set("kernel_depth", windows->front().kernel);
    parameters.set("out_depth", windows->front().out);
  }
  if (transposed) {
    parameters.set("out_height", high.out);
    parameters.set("out_width", wide.out);
    parameters.set("transposed", 1);
  }
  if (is_channels_last(at)) parameters.set("channels_last", 1);
  std::vector<Translation> translations = single_translation(Kind::convolution, "", std::move(parameters));
  if (at.step.type == "FusedConv") {
    translations.push_back({.kind = Kind::activation, .form = "relu", .parameters = tensor_parameters(at.out())});
  }
  return translations;
}

Translations pooling(const SizedStep& at, std::string_view form) {
  const Sizes& sizes = at.in(0);
  const Result<std::vector<SlidingWindow>> windows =
      windows_of(*at.step.node, sizes, integers_attribute(*at.step.node, "kernel_shape"));
  if (!windows || windows->empty() || windows->size() > 3) return std::nullopt;
  SlidingWindow high{.out = 1};
  for (std::size_t i = 0; i + 1 < windows->size(); ++i) {
    high.kernel *= (*windows)[i].kernel;
    high.stride *= (*windows)[i].stride;
    high.out *= (*windows)[i].out;
    high.padding_before = std::max(high.padding_before, (*windows)[i].padding_before);
  }
  const Image image = image_of(sizes);
  Parameters parameters = parameters_of(image);
  set_windows(parameters, high, windows->back(), image, false);
  return single_translation(Kind::pooling, form, std::move(parameters));
}

Translations global_pooling(const SizedStep& at) {
  Parameters parameters = parameters_of(image_of(at.in(0)));
  parameters.set("out", 1);
  return single_translation(Kind::pooling, "adaptive", std::move(parameters));
}

std::vector<Translation> row_norm(const SizedStep& at, std::string_view form) {
  const Sizes& sizes = at.in(0);
  std::int64_t normalized_count = at.step.normalized_count;
  if (normalized_count == 0) {
    const auto rank = static_cast<std::int64_t>(sizes.size());
    const std::int64_t axis = integer_attribute(*at.step.node, "axis", -1);
    normalized_count = product_of(
        sizes, static_cast<std::size_t>(std::max<std::int64_t>(0, axis < 0 ? axis + rank : axis)), sizes.size());
  }
  const std::int64_t rows = normalized_count == 0 ? 0 : elements_of(sizes) / normalized_count;
  return single_translation(Kind::normalization, form,
                            {{"batch", rows}, {"channels", normalized_count}, {"height", 1}, {"width", 1}});
}

Translations batch_norm(const SizedStep& at) {
  const bool trains = integer_attribute(*at.step.node, "training_mode", 0) != 0;
  return single_translation(Kind::normalization, trains ? "batch" : "batch-inference",
                            parameters_of(image_of(at.in(0))));
}

// Each channel of each image has its own statistics: equivalent to a batch of one with batch * channels channels.
Translations instance_norm(const SizedStep& at) {
  Image image = image_of(at.in(0));
  image.channels = product_of({image.batch, image.channels}, 0, 2);
  image.batch = 1;
  return single_translation(Kind::normalization, "batch", parameters_of(image));
}

Translations skip_norm(const SizedStep& at, std::string_view form) {
  std::vector<Translation> translations = row_norm(at, form);
  translations.insert(translations.begin(),
                      {.kind = Kind::add, .form = "same", .parameters = tensor_parameters(at.in(0))});
  return translations;
}

Translations padding(const SizedStep& at) {
  if (at.in(0) == at.out()) return single_translation(Kind::view, "", tensor_parameters(at.out()));
  const std::string_view mode = text_attribute(*at.step.node, "mode", "constant");
  const Image from = image_of(at.in(0));
  const Image to = image_of(at.out());
  Parameters parameters = parameters_of(from);
  parameters.set("padding", std::max<std::int64_t>(0, (to.height - from.height) / 2));
  // Counts padding of channels or batch as additional height, because image sizes alone do not show it.
  const std::int64_t other =
      from.batch * from.channels == 0 ? 1 : (to.batch * to.channels) / (from.batch * from.channels);
  parameters.set("out_height", to.height * std::max<std::int64_t>(1, other));
  parameters.set("out_width", to.width);
  return single_translation(Kind::padding,
                            mode == "edge"      ? "replicate"
                            : mode == "reflect" ? "reflect"
                                                : "constant",
                            std::move(parameters));
}

Translations resize(const SizedStep& at) {
  if (at.in(0) == at.out()) return single_translation(Kind::view, "", tensor_parameters(at.out()));
  const std::string_view mode = text_attribute(*at.step.node, "mode", "nearest");
  const Image to = image_of(at.out());
  Parameters parameters = parameters_of(image_of(at.in(0)));
  parameters.set("out", to.height);
  if (to.height != to.width) parameters.set("out_height", to.height);
  if (to.height != to.width) parameters.set("out_width", to.width);
  const bool samples = at.step.type == "GridSample";
  return single_translation(Kind::resize, !samples && mode == "nearest" ? "nearest" : "bilinear",
                            std::move(parameters));
}

}  // namespace

Translations translate_image(const SizedStep& at) {
  const std::string_view type = at.step.type;
  if (type == "Conv" || type == "FusedConv") return convolution(at, false);
  if (type == "ConvTranspose") return convolution(at, true);
  if (type == "MaxPool") return pooling(at, "max");
  if (type == "AveragePool" || type == "LpPool") return pooling(at, "avg");
  if (type == "GlobalAveragePool" || type == "GlobalMaxPool" || type == "GlobalLpPool") return global_pooling(at);
  if (type == "BatchNormalization") return batch_norm(at);
  if (type == "GroupNormalization")
    return single_translation(Kind::normalization, "group", parameters_of(image_of(at.in(0))));
  if (type == "InstanceNormalization") return instance_norm(at);
  if (type == "LayerNormalization") return row_norm(at, "layer");
  if (type == "RMSNormalization" || type == "SimplifiedLayerNormalization") return row_norm(at, "rms");
  if (type == "SkipLayerNormalization") return skip_norm(at, "layer");
  if (type == "SkipSimplifiedLayerNormalization") return skip_norm(at, "rms");
  if (type == "Pad") return padding(at);
  if (type == "Resize" || type == "GridSample") return resize(at);
  return std::nullopt;
}

}  // namespace joulemap::predict::onnx
