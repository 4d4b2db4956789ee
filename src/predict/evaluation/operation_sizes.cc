// SPDX-License-Identifier: Apache-2.0
//
// Example sizes for the table of an operation, by kind: typical of networks, from launch-bound to sizes that fill the
// GPU.
#include <fmt/format.h>

#include "predict/evaluation/operation_table.h"

namespace joulemap::predict {
namespace {

using ExampleSizes = std::vector<ExampleSize>;

ExampleSize dense_example_size(std::int64_t rows, std::int64_t in, std::int64_t out, bool is_unaligned = false) {
  return {fmt::format("{} x {} -> {}", rows, in, out),
          {{"rows", rows}, {"in", in}, {"out", out}, {"bias", 1}},
          is_unaligned};
}

ExampleSize bmm_example_size(std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n,
                             bool is_unaligned = false) {
  return {fmt::format("{} x ({} x {} x {})", batch, m, k, n),
          {{"batch", batch}, {"m", m}, {"k", k}, {"n", n}, {"transposed", 0}},
          is_unaligned};
}

ExampleSize attention_example_size(std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys,
                                   std::int64_t width) {
  return {fmt::format("{} x {} heads, {} on {}, {} wide", batch, heads, queries, keys, width),
          {{"batch", batch}, {"heads", heads}, {"queries", queries}, {"keys", keys}, {"width", width}, {"causal", 0}}};
}

ExampleSize recurrent_example_size(std::int64_t batch, std::int64_t steps, std::int64_t width, std::int64_t layers,
                                   std::int64_t directions) {
  return {fmt::format("{} x {} steps, {} wide, {} layers{}", batch, steps, width, layers,
                      directions > 1 ? ", bidirectional" : ""),
          {{"batch", batch},
           {"steps", steps},
           {"in", width},
           {"hidden", width},
           {"layers", layers},
           {"directions", directions},
           {"bias", 1}}};
}

struct ConvolutionExampleSize {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t output_channels;
  std::int64_t image_side;
  std::int64_t kernel;
};

ExampleSize convolution_example_size(const ConvolutionExampleSize& convolution_example, bool is_depthwise,
                                     bool is_unaligned = false) {
  const std::string text =
      fmt::format("{} x {} x {}^2, {}x{} -> {}", convolution_example.batch, convolution_example.channels,
                  convolution_example.image_side, convolution_example.kernel, convolution_example.kernel,
                  convolution_example.output_channels);
  return {text,
          {{"batch", convolution_example.batch},
           {"channels", convolution_example.channels},
           {"out", convolution_example.output_channels},
           {"height", convolution_example.image_side},
           {"width", convolution_example.image_side},
           {"kernel", convolution_example.kernel},
           {"stride", 1},
           {"padding", convolution_example.kernel / 2},
           {"dilation", 1},
           {"groups", is_depthwise ? convolution_example.channels : 1},
           {"bias", 0},
           {"channels_last", 0}},
          is_unaligned};
}

ExampleSize convolution_1d_example_size(std::int64_t batch, std::int64_t channels, std::int64_t width) {
  return {fmt::format("{} x {} x {}, 3 -> {}", batch, channels, width, channels),
          {{"batch", batch},
           {"channels", channels},
           {"out", channels},
           {"height", 1},
           {"width", width},
           {"kernel", 1},
           {"stride", 1},
           {"padding", 0},
           {"dilation", 1},
           {"groups", 1},
           {"bias", 1},
           {"channels_last", 0},
           {"kernel_width", 3},
           {"padding_width", 1}}};
}

ExampleSizes convolution_example_sizes(const std::string& variant) {
  if (variant == "1d") {
    return {convolution_1d_example_size(1, 64, 1024), convolution_1d_example_size(16, 256, 1024),
            convolution_1d_example_size(32, 512, 4096)};
  }
  if (variant == "depthwise") {
    return {convolution_example_size({1, 96, 96, 56, 3}, true), convolution_example_size({32, 96, 96, 112, 3}, true),
            convolution_example_size({32, 384, 384, 28, 5}, true),
            convolution_example_size({128, 960, 960, 14, 3}, true)};
  }
  return {convolution_example_size({1, 64, 64, 56, 3}, false),
          convolution_example_size({32, 64, 64, 56, 3}, false),
          convolution_example_size({32, 256, 64, 56, 1}, false),
          convolution_example_size({32, 512, 512, 7, 3}, false),
          convolution_example_size({128, 256, 256, 28, 3}, false),
          convolution_example_size({128, 255, 255, 28, 3}, false, true)};
}

struct ImageExampleSize {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t image_side;
};
constexpr auto kImageExampleSizes =
    std::to_array<ImageExampleSize>({{1, 64, 56}, {16, 64, 56}, {32, 64, 112}, {64, 256, 56}, {128, 256, 112}});

ExampleSize image_example_size(const ImageExampleSize& i) {
  return {fmt::format("{} x {} x {}^2", i.batch, i.channels, i.image_side),
          {{"batch", i.batch}, {"channels", i.channels}, {"height", i.image_side}, {"width", i.image_side}}};
}

ExampleSizes image_example_sizes(const NamedOperation& subject) {
  ExampleSizes sizes;
  for (const ImageExampleSize& image_example : kImageExampleSizes) {
    ExampleSize size = image_example_size(image_example);
    if (subject.kind == Kind::padding) size.parameters.set("padding", 1);
    if (subject.kind == Kind::resize) size.parameters.set("out", 2 * image_example.image_side);
    if (subject.kind == Kind::pooling && subject.form == "adaptive") size.parameters.set("out", 1);
    if (subject.kind == Kind::pooling && subject.form != "adaptive") {
      size.parameters.set("kernel", 3);
      size.parameters.set("stride", 2);
      size.parameters.set("padding", 1);
      size.text += ", 3x3 by 2";
    }
    sizes.push_back(std::move(size));
  }
  return sizes;
}

ExampleSizes normalization_example_sizes(const NamedOperation& subject) {
  if (subject.form != "layer" && subject.form != "rms") return image_example_sizes(subject);
  ExampleSizes sizes;
  for (const auto& [rows, width] :
       {std::pair<std::int64_t, std::int64_t>{128, 768}, {4096, 768}, {16384, 1024}, {65536, 4096}}) {
    sizes.push_back(
        {fmt::format("{} x {}", rows, width), {{"batch", rows}, {"channels", width}, {"height", 1}, {"width", 1}}});
  }
  return sizes;
}

ExampleSizes tensor_example_sizes(const NamedOperation& subject) {
  ExampleSizes sizes;
  for (const auto& [batch, rows] :
       {std::pair<std::int64_t, std::int64_t>{1, 16}, {1, 256}, {8, 256}, {32, 512}, {64, 1024}}) {
    ExampleSize size{fmt::format("{} x {} x 1024", batch, rows), {{"batch", batch}, {"rows", rows}, {"width", 1024}}};
    if (subject.kind == Kind::concatenate) size.parameters.set("parts", 2);
    if (subject.kind == Kind::reduce) size.parameters.set("over", 0);
    if (subject.kind == Kind::rescaling) size.parameters.set("from_bytes", 0);
    sizes.push_back(std::move(size));
  }
  return sizes;
}

ExampleSize embedding_example_size(std::int64_t tokens, std::int64_t width) {
  return {fmt::format("{} of 32000, {} wide", tokens, width),
          {{"vocabulary", 32000}, {"width", width}, {"tokens", tokens}}};
}

ExampleSize loss_example_size(std::int64_t rows, std::int64_t classes) {
  return {fmt::format("{} x {}", rows, classes), {{"rows", rows}, {"classes", classes}}};
}

ExampleSize optimizer_example_size(std::int64_t count, std::int64_t million_elements, bool is_fused) {
  return {fmt::format("{} M in {} tensors{}", million_elements, count, is_fused ? ", fused" : ""),
          {{"tensors", count},
           {"elements", million_elements * 1'000'000},
           {"fused", is_fused ? 1 : 0},
           {"foreach", is_fused ? 0 : 1}}};
}

ExampleSize input_copy_example_size(std::int64_t batch, bool is_pinned) {
  return {fmt::format("{} x 3 x 224^2{}", batch, is_pinned ? ", pinned" : ""),
          {{"batch", batch},
           {"channels", 3},
           {"height", 224},
           {"width", 224},
           {"pinned", is_pinned ? 1 : 0},
           {"bytes", 0}}};
}

}  // namespace

std::vector<ExampleSize> list_example_sizes(const NamedOperation& subject) {
  switch (subject.kind) {
    case Kind::dense:
      return {dense_example_size(1, 1024, 1024),    dense_example_size(64, 1024, 1024),
              dense_example_size(1024, 1024, 4096), dense_example_size(4096, 1024, 4096),
              dense_example_size(4096, 4096, 4096), dense_example_size(4096, 4095, 4095, true)};
    case Kind::bmm:
      return {bmm_example_size(8, 64, 64, 64), bmm_example_size(64, 128, 64, 128), bmm_example_size(96, 512, 64, 512),
              bmm_example_size(64, 1024, 128, 1024), bmm_example_size(64, 1023, 127, 1023, true)};
    case Kind::attention:
      return {attention_example_size(1, 8, 128, 128, 64), attention_example_size(16, 12, 197, 197, 64),
              attention_example_size(8, 12, 512, 512, 64), attention_example_size(4, 16, 2048, 2048, 128),
              attention_example_size(64, 32, 1, 2048, 128)};
    case Kind::recurrent:
      return {recurrent_example_size(1, 128, 128, 1, 1), recurrent_example_size(32, 128, 256, 2, 1),
              recurrent_example_size(64, 256, 512, 2, 2), recurrent_example_size(128, 64, 1024, 2, 1)};
    case Kind::convolution:
      return convolution_example_sizes(subject.variant);
    case Kind::pooling:
    case Kind::padding:
    case Kind::resize:
      return image_example_sizes(subject);
    case Kind::normalization:
      return normalization_example_sizes(subject);
    case Kind::embedding:
      return {embedding_example_size(128, 768), embedding_example_size(4096, 768), embedding_example_size(32768, 2048)};
    case Kind::loss:
      return {loss_example_size(32, 1000), loss_example_size(1024, 1000), loss_example_size(8192, 32000)};
    case Kind::optimizer:
      return {optimizer_example_size(62, 12, false), optimizer_example_size(161, 26, false),
              optimizer_example_size(200, 110, false), optimizer_example_size(200, 110, true)};
    case Kind::input:
      return {input_copy_example_size(1, false), input_copy_example_size(32, false),
              input_copy_example_size(256, false), input_copy_example_size(256, true)};
    default:
      return tensor_example_sizes(subject);
  }
}

}  // namespace joulemap::predict
