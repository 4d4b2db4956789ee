// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "predict/evaluation/operation_table.h"
#include "predict/graph/names.h"

namespace joulemap::predict {
namespace {

struct KnownOperationName {
  std::string_view name;  // last part: "Conv2d" of "torch.nn.Conv2d"
  Kind kind;
  std::string_view form = "";
  std::string_view variant = "";
};

constexpr std::size_t kMaxSuggestedNames = 6;

// Names of PyTorch, Keras and ONNX. find_operation() ignores case and underscores.
constexpr auto kKnownOperationNames = std::to_array<KnownOperationName>({
    {"Linear", Kind::dense},
    {"Dense", Kind::dense},
    {"Gemm", Kind::dense},
    {"addmm", Kind::dense},
    {"mm", Kind::dense},
    {"EinsumDense", Kind::dense},
    {"bmm", Kind::bmm},
    {"baddbmm", Kind::bmm},
    {"MatMul", Kind::bmm},
    {"attention", Kind::attention},
    {"scaled_dot_product_attention", Kind::attention},
    {"MultiheadAttention", Kind::attention},
    {"MultiHeadAttention", Kind::attention},
    {"LSTM", Kind::recurrent, "lstm"},
    {"recurrent", Kind::recurrent, "lstm"},
    {"GRU", Kind::recurrent, "gru"},
    {"RNN", Kind::recurrent, "rnn_tanh"},
    {"SimpleRNN", Kind::recurrent, "rnn_tanh"},
    {"convolution", Kind::convolution},
    {"Conv", Kind::convolution},
    {"Conv2d", Kind::convolution},
    {"Conv1d", Kind::convolution, "", "1d"},
    {"DepthwiseConv2D", Kind::convolution, "", "depthwise"},
    {"pooling", Kind::pooling, "max"},
    {"MaxPool", Kind::pooling, "max"},
    {"MaxPool2d", Kind::pooling, "max"},
    {"MaxPooling2D", Kind::pooling, "max"},
    {"AvgPool2d", Kind::pooling, "avg"},
    {"AveragePool", Kind::pooling, "avg"},
    {"AveragePooling2D", Kind::pooling, "avg"},
    {"AdaptiveAvgPool2d", Kind::pooling, "adaptive"},
    {"GlobalAveragePool", Kind::pooling, "adaptive"},
    {"GlobalAveragePooling2D", Kind::pooling, "adaptive"},
    {"padding", Kind::padding, "constant"},
    {"pad", Kind::padding, "constant"},
    {"ZeroPad2d", Kind::padding, "constant"},
    {"ZeroPadding2D", Kind::padding, "constant"},
    {"ReflectionPad2d", Kind::padding, "reflect"},
    {"ReplicationPad2d", Kind::padding, "replicate"},
    {"normalization", Kind::normalization, "batch"},
    {"BatchNorm2d", Kind::normalization, "batch"},
    {"BatchNormalization", Kind::normalization, "batch"},
    {"LayerNorm", Kind::normalization, "layer"},
    {"LayerNormalization", Kind::normalization, "layer"},
    {"GroupNorm", Kind::normalization, "group"},
    {"GroupNormalization", Kind::normalization, "group"},
    {"RMSNorm", Kind::normalization, "rms"},
    {"RMSNormalization", Kind::normalization, "rms"},
    {"activation", Kind::activation, "relu"},
    {"ReLU", Kind::activation, "relu"},
    {"ReLU6", Kind::activation, "relu6"},
    {"LeakyReLU", Kind::activation, "leaky_relu"},
    {"GELU", Kind::activation, "gelu"},
    {"SiLU", Kind::activation, "silu"},
    {"swish", Kind::activation, "silu"},
    {"Sigmoid", Kind::activation, "sigmoid"},
    {"Tanh", Kind::activation, "tanh"},
    {"Softmax", Kind::activation, "softmax"},
    {"LogSoftmax", Kind::activation, "log_softmax"},
    {"Hardswish", Kind::activation, "hardswish"},
    {"rescaling", Kind::rescaling},
    {"reshape", Kind::reshape, "transpose"},
    {"transpose", Kind::reshape, "transpose"},
    {"permute", Kind::reshape, "transpose"},
    {"contiguous", Kind::reshape, "transpose"},
    {"Dropout", Kind::dropout},
    {"add", Kind::add, "same"},
    {"mul", Kind::multiply, "same"},
    {"multiply", Kind::multiply, "same"},
    {"cat", Kind::concatenate},
    {"concat", Kind::concatenate},
    {"concatenate", Kind::concatenate},
    {"Embedding", Kind::embedding},
    {"loss", Kind::loss},
    {"CrossEntropyLoss", Kind::loss},
    {"cross_entropy", Kind::loss},
    {"SoftmaxCrossEntropyLoss", Kind::loss},
    {"CategoricalCrossentropy", Kind::loss},
    {"resize", Kind::resize, "nearest"},
    {"interpolate", Kind::resize, "nearest"},
    {"Upsample", Kind::resize, "nearest"},
    {"UpSampling2D", Kind::resize, "nearest"},
    {"cast", Kind::cast},
    {"to", Kind::cast},
    {"reduce", Kind::reduce, "mean"},
    {"mean", Kind::reduce, "mean"},
    {"ReduceMean", Kind::reduce, "mean"},
    {"sum", Kind::reduce, "sum"},
    {"ReduceSum", Kind::reduce, "sum"},
    {"amax", Kind::reduce, "amax"},
    {"ReduceMax", Kind::reduce, "amax"},
    {"input", Kind::input},
    {"optimizer", Kind::optimizer, "adamw"},
    {"SGD", Kind::optimizer, "sgd"},
    {"momentum", Kind::optimizer, "momentum"},
    {"Adam", Kind::optimizer, "adam"},
    {"AdamW", Kind::optimizer, "adamw"},
    {"RMSprop", Kind::optimizer, "rmsprop"},
});

std::string_view last_name_part(std::string_view name) {
  const std::size_t point = name.find_last_of(".:/");
  return point == std::string_view::npos ? name : name.substr(point + 1);
}

}  // namespace

Result<NamedOperation> find_operation(std::string_view name) {
  const std::string requested_name = normalized_name(last_name_part(trim(name)));
  std::vector<std::string_view> names;
  for (const KnownOperationName& known : kKnownOperationNames) {
    if (!requested_name.empty() && normalized_name(known.name) == requested_name) {
      return NamedOperation{std::string(trim(name)), known.kind, std::string(known.form), std::string(known.variant)};
    }
    names.push_back(known.name);
  }
  std::string similar_names;
  for (const std::string_view similar_name : nearest_names(requested_name, names, kMaxSuggestedNames)) {
    similar_names += fmt::format("{}{}", similar_names.empty() ? "" : ", ", similar_name);
  }
  return Error{ErrorCode::usage, fmt::format("there is no operation {}", quoted(name, 80)),
               "similar names: " + similar_names};
}

}  // namespace joulemap::predict
