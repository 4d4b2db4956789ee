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
void set_window_parameters(OperationParameters& parameters, const SlidingWindow& height_window,
                           const SlidingWindow& width_window, const ImageSizes& image, bool has_dilation) {
  parameters.set("kernel", height_window.kernel);
  parameters.set("stride", height_window.stride);
  parameters.set("padding", height_window.padding_before);
  if (has_dilation) parameters.set("dilation", height_window.dilation);
  if (width_window.kernel != height_window.kernel) parameters.set("kernel_width", width_window.kernel);
  if (width_window.stride != height_window.stride) parameters.set("stride_width", width_window.stride);
  if (width_window.padding_before != height_window.padding_before)
    parameters.set("padding_width", width_window.padding_before);
  if (has_dilation && width_window.dilation != height_window.dilation)
    parameters.set("dilation_width", width_window.dilation);
  if (window_position_count(image.height, height_window) == height_window.output_size &&
      window_position_count(image.width, width_window) == width_window.output_size)
    return;
  parameters.set("out_height", height_window.output_size);
  parameters.set("out_width", width_window.output_size);
}

// Whether images are channels-last: a transposition precedes, as exporters of TensorFlow write it.
bool is_channels_last(const SizedStep& sized_step) {
  const ProgramStep* const step = sized_step.producer(0);
  return step != nullptr && step->type == "Transpose" && integers_attribute(*step->node, "perm") == Sizes{0, 3, 1, 2};
}

Translations translate_convolution(const SizedStep& sized_step, bool is_transposed) {
  const Sizes& sizes = sized_step.input_sizes(0);
  const Sizes& weight = sized_step.input_sizes(1);
  const Sizes kernel(weight.begin() + 2, weight.end());
  const Result<std::vector<SlidingWindow>> windows =
      is_transposed ? read_transposed_sliding_windows(*sized_step.step.node, sizes, kernel)
                    : read_sliding_windows(*sized_step.step.node, sizes, kernel);
  if (!windows || windows->empty() || windows->size() > 3) return std::nullopt;
  const bool is_three_dimensional = windows->size() == 3;
  const SlidingWindow width_window = windows->back();
  const SlidingWindow height_window =
      windows->size() == 1 ? SlidingWindow{.output_size = 1} : (*windows)[windows->size() - 2];
  ImageSizes image{.batch = sizes[0],
                   .channels = sizes[1],
                   .height = windows->size() == 1 ? 1 : sizes[sizes.size() - 2],
                   .width = sizes.back()};
  OperationParameters parameters = {{"batch", image.batch},
                                    {"channels", image.channels},
                                    {"out", sized_step.output_sizes()[1]},
                                    {"height", image.height},
                                    {"width", image.width}};
  set_window_parameters(parameters, height_window, width_window, image, true);
  parameters.set("groups", integer_attribute(*sized_step.step.node, "group", 1));
  parameters.set("bias", sized_step.has_input(2) ? 1 : 0);
  if (is_three_dimensional) {
    parameters.set("depth", sizes[2]);
    parameters.set("kernel_depth", windows->front().kernel);
    parameters.set("out_depth", windows->front().output_size);
  }
  if (is_transposed) {
    parameters.set("out_height", height_window.output_size);
    parameters.set("out_width", width_window.output_size);
    parameters.set("transposed", 1);
  }
  if (is_channels_last(sized_step)) parameters.set("channels_last", 1);
  std::vector<TranslatedOperation> translations = make_single_operation(Kind::convolution, "", std::move(parameters));
  if (sized_step.step.type == "FusedConv") {
    translations.push_back(
        {.kind = Kind::activation, .form = "relu", .parameters = tensor_parameters(sized_step.output_sizes())});
  }
  return translations;
}

Translations translate_pooling(const SizedStep& sized_step, std::string_view operation_form) {
  const Sizes& sizes = sized_step.input_sizes(0);
  const Result<std::vector<SlidingWindow>> windows =
      read_sliding_windows(*sized_step.step.node, sizes, integers_attribute(*sized_step.step.node, "kernel_shape"));
  if (!windows || windows->empty() || windows->size() > 3) return std::nullopt;
  SlidingWindow height_window{.output_size = 1};
  for (std::size_t i = 0; i + 1 < windows->size(); ++i) {
    height_window.kernel *= (*windows)[i].kernel;
    height_window.stride *= (*windows)[i].stride;
    height_window.output_size *= (*windows)[i].output_size;
    height_window.padding_before = std::max(height_window.padding_before, (*windows)[i].padding_before);
  }
  const ImageSizes image = read_image_sizes(sizes);
  OperationParameters parameters = image_parameters(image);
  set_window_parameters(parameters, height_window, windows->back(), image, false);
  return make_single_operation(Kind::pooling, operation_form, std::move(parameters));
}

Translations translate_global_pooling(const SizedStep& sized_step) {
  OperationParameters parameters = image_parameters(read_image_sizes(sized_step.input_sizes(0)));
  parameters.set("out", 1);
  return make_single_operation(Kind::pooling, "adaptive", std::move(parameters));
}

std::vector<TranslatedOperation> translate_row_norm(const SizedStep& sized_step, std::string_view operation_form) {
  const Sizes& sizes = sized_step.input_sizes(0);
  std::int64_t normalized_count = sized_step.step.normalized_element_count;
  if (normalized_count == 0) {
    const auto rank = static_cast<std::int64_t>(sizes.size());
    const std::int64_t axis = integer_attribute(*sized_step.step.node, "axis", -1);
    normalized_count = product_of_sizes(
        sizes, static_cast<std::size_t>(std::max<std::int64_t>(0, axis < 0 ? axis + rank : axis)), sizes.size());
  }
  const std::int64_t rows = normalized_count == 0 ? 0 : onnx_element_count(sizes) / normalized_count;
  return make_single_operation(Kind::normalization, operation_form,
                               {{"batch", rows}, {"channels", normalized_count}, {"height", 1}, {"width", 1}});
}

Translations translate_batch_norm(const SizedStep& sized_step) {
  const bool is_training_program = integer_attribute(*sized_step.step.node, "training_mode", 0) != 0;
  return make_single_operation(Kind::normalization, is_training_program ? "batch" : "batch-inference",
                               image_parameters(read_image_sizes(sized_step.input_sizes(0))));
}

// Each channel of each image has its own statistics: equivalent to a batch of one with batch * channels channels.
Translations translate_instance_norm(const SizedStep& sized_step) {
  ImageSizes image = read_image_sizes(sized_step.input_sizes(0));
  image.channels = product_of_sizes({image.batch, image.channels}, 0, 2);
  image.batch = 1;
  return make_single_operation(Kind::normalization, "batch", image_parameters(image));
}

Translations translate_skip_layer_norm(const SizedStep& sized_step, std::string_view operation_form) {
  std::vector<TranslatedOperation> translations = translate_row_norm(sized_step, operation_form);
  translations.insert(translations.begin(),
                      {.kind = Kind::add, .form = "same", .parameters = tensor_parameters(sized_step.input_sizes(0))});
  return translations;
}

Translations translate_padding(const SizedStep& sized_step) {
  if (sized_step.input_sizes(0) == sized_step.output_sizes())
    return make_single_operation(Kind::view, "", tensor_parameters(sized_step.output_sizes()));
  const std::string_view mode = text_attribute(*sized_step.step.node, "mode", "constant");
  const ImageSizes input_image = read_image_sizes(sized_step.input_sizes(0));
  const ImageSizes output_image = read_image_sizes(sized_step.output_sizes());
  OperationParameters parameters = image_parameters(input_image);
  parameters.set("padding", std::max<std::int64_t>(0, (output_image.height - input_image.height) / 2));
  // Counts padding of channels or batch as additional height, because image sizes alone do not show it.
  const std::int64_t batch_channel_ratio =
      input_image.batch * input_image.channels == 0
          ? 1
          : (output_image.batch * output_image.channels) / (input_image.batch * input_image.channels);
  parameters.set("out_height", output_image.height * std::max<std::int64_t>(1, batch_channel_ratio));
  parameters.set("out_width", output_image.width);
  return make_single_operation(Kind::padding,
                               mode == "edge"      ? "replicate"
                               : mode == "reflect" ? "reflect"
                                                   : "constant",
                               std::move(parameters));
}

Translations translate_resize(const SizedStep& sized_step) {
  if (sized_step.input_sizes(0) == sized_step.output_sizes())
    return make_single_operation(Kind::view, "", tensor_parameters(sized_step.output_sizes()));
  const std::string_view mode = text_attribute(*sized_step.step.node, "mode", "nearest");
  const ImageSizes output_image = read_image_sizes(sized_step.output_sizes());
  OperationParameters parameters = image_parameters(read_image_sizes(sized_step.input_sizes(0)));
  parameters.set("out", output_image.height);
  if (output_image.height != output_image.width) parameters.set("out_height", output_image.height);
  if (output_image.height != output_image.width) parameters.set("out_width", output_image.width);
  const bool samples = sized_step.step.type == "GridSample";
  return make_single_operation(Kind::resize, !samples && mode == "nearest" ? "nearest" : "bilinear",
                               std::move(parameters));
}

}  // namespace

Translations translate_image_node(const SizedStep& sized_step) {
  const std::string_view type = sized_step.step.type;
  if (type == "Conv" || type == "FusedConv") return translate_convolution(sized_step, false);
  if (type == "ConvTranspose") return translate_convolution(sized_step, true);
  if (type == "MaxPool") return translate_pooling(sized_step, "max");
  if (type == "AveragePool" || type == "LpPool") return translate_pooling(sized_step, "avg");
  if (type == "GlobalAveragePool" || type == "GlobalMaxPool" || type == "GlobalLpPool")
    return translate_global_pooling(sized_step);
  if (type == "BatchNormalization") return translate_batch_norm(sized_step);
  if (type == "GroupNormalization")
    return make_single_operation(Kind::normalization, "group",
                                 image_parameters(read_image_sizes(sized_step.input_sizes(0))));
  if (type == "InstanceNormalization") return translate_instance_norm(sized_step);
  if (type == "LayerNormalization") return translate_row_norm(sized_step, "layer");
  if (type == "RMSNormalization" || type == "SimplifiedLayerNormalization")
    return translate_row_norm(sized_step, "rms");
  if (type == "SkipLayerNormalization") return translate_skip_layer_norm(sized_step, "layer");
  if (type == "SkipSimplifiedLayerNormalization") return translate_skip_layer_norm(sized_step, "rms");
  if (type == "Pad") return translate_padding(sized_step);
  if (type == "Resize" || type == "GridSample") return translate_resize(sized_step);
  return std::nullopt;
}

}  // namespace joulemap::predict::onnx
