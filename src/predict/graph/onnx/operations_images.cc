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
struct ImageSizes {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;
};

ImageSizes read_image_sizes(const Sizes& sizes) {
  ImageSizes image;
  if (!sizes.empty()) image.batch = sizes[0];
  if (sizes.size() >= 2) image.channels = sizes[1];
  if (sizes.size() >= 3) image.width = sizes.back();
  if (sizes.size() >= 4) image.height = product_of_sizes(sizes, 2, sizes.size() - 1);
  return image;
}

OperationParameters image_parameters(const ImageSizes& image) {
  return {{"batch", image.batch}, {"channels", image.channels}, {"height", image.height}, {"width", image.width}};
}

std::int64_t window_position_count(std::int64_t size, const SlidingWindow& window) {
  return (size + 2 * window.padding_before - window.dilation * (window.kernel - 1) - 1) / window.stride + 1;
}

// Sets kernel, stride, padding and dilation. Those of the width are set only if they differ from the height's, and
// output sizes only if they do not follow from the other parameters.
void set_window_parameters(OperationParameters& parameters, const SlidingWindow& high, const SlidingWindow& wide,
                           const ImageSizes& image, bool has_dilation) {
  parameters.set("kernel", high.kernel);
  parameters.set("stride", high.stride);
  parameters.set("padding", high.padding_before);
  if (has_dilation) parameters.set("dilation", high.dilation);
  if (wide.kernel != high.kernel) parameters.set("kernel_width", wide.kernel);
  if (wide.stride != high.stride) parameters.set("stride_width", wide.stride);
  if (wide.padding_before != high.padding_before) parameters.set("padding_width", wide.padding_before);
  if (has_dilation && wide.dilation != high.dilation) parameters.set("dilation_width", wide.dilation);
  if (window_position_count(image.height, high) == high.output_size &&
      window_position_count(image.width, wide) == wide.output_size)
    return;
  parameters.set("out_height", high.output_size);
  parameters.set("out_width", wide.output_size);
}

// Whether images are channels-last: a transposition precedes, as exporters of TensorFlow write it.
bool is_channels_last(const SizedStep& at) {
  const ProgramStep* const step = at.producer(0);
  return step != nullptr && step->type == "Transpose" && integers_attribute(*step->node, "perm") == Sizes{0, 3, 1, 2};
}

Translations translate_convolution(const SizedStep& at, bool transposed) {
  const Sizes& sizes = at.input_sizes(0);
  const Sizes& weight = at.input_sizes(1);
  const Sizes kernel(weight.begin() + 2, weight.end());
  const Result<std::vector<SlidingWindow>> windows = transposed
                                                         ? read_transposed_sliding_windows(*at.step.node, sizes, kernel)
                                                         : read_sliding_windows(*at.step.node, sizes, kernel);
  if (!windows || windows->empty() || windows->size() > 3) return std::nullopt;
  const bool deep = windows->size() == 3;
  const SlidingWindow wide = windows->back();
  const SlidingWindow high = windows->size() == 1 ? SlidingWindow{.output_size = 1} : (*windows)[windows->size() - 2];
  ImageSizes image{.batch = sizes[0],
                   .channels = sizes[1],
                   .height = windows->size() == 1 ? 1 : sizes[sizes.size() - 2],
                   .width = sizes.back()};
  OperationParameters parameters = {{"batch", image.batch},
                                    {"channels", image.channels},
                                    {"out", at.output_sizes()[1]},
                                    {"height", image.height},
                                    {"width", image.width}};
  set_window_parameters(parameters, high, wide, image, true);
  parameters.set("groups", integer_attribute(*at.step.node, "group", 1));
  parameters.set("bias", at.has_input(2) ? 1 : 0);
  if (deep) {
    parameters.set("depth", sizes[2]);
    parameters.set("kernel_depth", windows->front().kernel);
    parameters.set("out_depth", windows->front().output_size);
  }
  if (transposed) {
    parameters.set("out_height", high.output_size);
    parameters.set("out_width", wide.output_size);
    parameters.set("transposed", 1);
  }
  if (is_channels_last(at)) parameters.set("channels_last", 1);
  std::vector<TranslatedOperation> translations = make_single_operation(Kind::convolution, "", std::move(parameters));
  if (at.step.type == "FusedConv") {
    translations.push_back(
        {.kind = Kind::activation, .form = "relu", .parameters = tensor_parameters(at.output_sizes())});
  }
  return translations;
}

Translations translate_pooling(const SizedStep& at, std::string_view form) {
  const Sizes& sizes = at.input_sizes(0);
  const Result<std::vector<SlidingWindow>> windows =
      read_sliding_windows(*at.step.node, sizes, integers_attribute(*at.step.node, "kernel_shape"));
  if (!windows || windows->empty() || windows->size() > 3) return std::nullopt;
  SlidingWindow high{.output_size = 1};
  for (std::size_t i = 0; i + 1 < windows->size(); ++i) {
    high.kernel *= (*windows)[i].kernel;
    high.stride *= (*windows)[i].stride;
    high.output_size *= (*windows)[i].output_size;
    high.padding_before = std::max(high.padding_before, (*windows)[i].padding_before);
  }
  const ImageSizes image = read_image_sizes(sizes);
  OperationParameters parameters = image_parameters(image);
  set_window_parameters(parameters, high, windows->back(), image, false);
  return make_single_operation(Kind::pooling, form, std::move(parameters));
}

Translations translate_global_pooling(const SizedStep& at) {
  OperationParameters parameters = image_parameters(read_image_sizes(at.input_sizes(0)));
  parameters.set("out", 1);
  return make_single_operation(Kind::pooling, "adaptive", std::move(parameters));
}

std::vector<TranslatedOperation> translate_row_norm(const SizedStep& at, std::string_view form) {
  const Sizes& sizes = at.input_sizes(0);
  std::int64_t normalized_count = at.step.normalized_element_count;
  if (normalized_count == 0) {
    const auto rank = static_cast<std::int64_t>(sizes.size());
    const std::int64_t axis = integer_attribute(*at.step.node, "axis", -1);
    normalized_count = product_of_sizes(
        sizes, static_cast<std::size_t>(std::max<std::int64_t>(0, axis < 0 ? axis + rank : axis)), sizes.size());
  }
  const std::int64_t rows = normalized_count == 0 ? 0 : onnx_element_count(sizes) / normalized_count;
  return make_single_operation(Kind::normalization, form,
                               {{"batch", rows}, {"channels", normalized_count}, {"height", 1}, {"width", 1}});
}

Translations translate_batch_norm(const SizedStep& at) {
  const bool is_training_program = integer_attribute(*at.step.node, "training_mode", 0) != 0;
  return make_single_operation(Kind::normalization, is_training_program ? "batch" : "batch-inference",
                               image_parameters(read_image_sizes(at.input_sizes(0))));
}

// Each channel of each image has its own statistics: equivalent to a batch of one with batch * channels channels.
Translations translate_instance_norm(const SizedStep& at) {
  ImageSizes image = read_image_sizes(at.input_sizes(0));
  image.channels = product_of_sizes({image.batch, image.channels}, 0, 2);
  image.batch = 1;
  return make_single_operation(Kind::normalization, "batch", image_parameters(image));
}

Translations translate_skip_layer_norm(const SizedStep& at, std::string_view form) {
  std::vector<TranslatedOperation> translations = translate_row_norm(at, form);
  translations.insert(translations.begin(),
                      {.kind = Kind::add, .form = "same", .parameters = tensor_parameters(at.input_sizes(0))});
  return translations;
}

Translations translate_padding(const SizedStep& at) {
  if (at.input_sizes(0) == at.output_sizes())
    return make_single_operation(Kind::view, "", tensor_parameters(at.output_sizes()));
  const std::string_view mode = text_attribute(*at.step.node, "mode", "constant");
  const ImageSizes from = read_image_sizes(at.input_sizes(0));
  const ImageSizes to = read_image_sizes(at.output_sizes());
  OperationParameters parameters = image_parameters(from);
  parameters.set("padding", std::max<std::int64_t>(0, (to.height - from.height) / 2));
  // Counts padding of channels or batch as additional height, because image sizes alone do not show it.
  const std::int64_t other =
      from.batch * from.channels == 0 ? 1 : (to.batch * to.channels) / (from.batch * from.channels);
  parameters.set("out_height", to.height * std::max<std::int64_t>(1, other));
  parameters.set("out_width", to.width);
  return make_single_operation(Kind::padding,
                               mode == "edge"      ? "replicate"
                               : mode == "reflect" ? "reflect"
                                                   : "constant",
                               std::move(parameters));
}

Translations translate_resize(const SizedStep& at) {
  if (at.input_sizes(0) == at.output_sizes())
    return make_single_operation(Kind::view, "", tensor_parameters(at.output_sizes()));
  const std::string_view mode = text_attribute(*at.step.node, "mode", "nearest");
  const ImageSizes to = read_image_sizes(at.output_sizes());
  OperationParameters parameters = image_parameters(read_image_sizes(at.input_sizes(0)));
  parameters.set("out", to.height);
  if (to.height != to.width) parameters.set("out_height", to.height);
  if (to.height != to.width) parameters.set("out_width", to.width);
  const bool samples = at.step.type == "GridSample";
  return make_single_operation(Kind::resize, !samples && mode == "nearest" ? "nearest" : "bilinear",
                               std::move(parameters));
}

}  // namespace

Translations translate_image_node(const SizedStep& at) {
  const std::string_view type = at.step.type;
  if (type == "Conv" || type == "FusedConv") return translate_convolution(at, false);
  if (type == "ConvTranspose") return translate_convolution(at, true);
  if (type == "MaxPool") return translate_pooling(at, "max");
  if (type == "AveragePool" || type == "LpPool") return translate_pooling(at, "avg");
  if (type == "GlobalAveragePool" || type == "GlobalMaxPool" || type == "GlobalLpPool")
    return translate_global_pooling(at);
  if (type == "BatchNormalization") return translate_batch_norm(at);
  if (type == "GroupNormalization")
    return make_single_operation(Kind::normalization, "group", image_parameters(read_image_sizes(at.input_sizes(0))));
  if (type == "InstanceNormalization") return translate_instance_norm(at);
  if (type == "LayerNormalization") return translate_row_norm(at, "layer");
  if (type == "RMSNormalization" || type == "SimplifiedLayerNormalization") return translate_row_norm(at, "rms");
  if (type == "SkipLayerNormalization") return translate_skip_layer_norm(at, "layer");
  if (type == "SkipSimplifiedLayerNormalization") return translate_skip_layer_norm(at, "rms");
  if (type == "Pad") return translate_padding(at);
  if (type == "Resize" || type == "GridSample") return translate_resize(at);
  return std::nullopt;
}

}  // namespace joulemap::predict::onnx
