// SPDX-License-Identifier: Apache-2.0
//
// Rules for Keras layer classes: a rule translates a call to operations and returns the output shapes. Each source file
// has one table of rules. Functions of keras.ops and TensorFlow (TFOpLambda) are listed by their names in lower case
// without underscores. Pure except for the LayerCall.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "predict/graph/keras/layer_call.h"

namespace joulemap::predict::keras {

using LayerRule = std::vector<Shape> (*)(LayerCall& call);

struct LayerClassRule {
  std::string_view class_name;
  LayerRule apply_rule;
};

std::span<const LayerClassRule> attention_rules();
std::span<const LayerClassRule> convolution_rules();
std::span<const LayerClassRule> dense_rules();
std::span<const LayerClassRule> elementwise_layer_rules();
std::span<const LayerClassRule> elementwise_function_rules();
std::span<const LayerClassRule> image_rules();
std::span<const LayerClassRule> merge_rules();
std::span<const LayerClassRule> normalization_rules();
std::span<const LayerClassRule> pooling_rules();
std::span<const LayerClassRule> recurrent_rules();
std::span<const LayerClassRule> shape_rules();

// The rule of a class; null if there is none.
LayerRule find_rule(std::string_view class_name);

// ---- helpers of rules in several source files
void emit_dense(LayerCall& call, std::int64_t rows, std::int64_t in, std::int64_t out, bool has_bias,
                std::int64_t count = 1);
void emit_binary(LayerCall& call, Kind kind, const Shape& out, const Shape& left_shape, const Shape& right_shape);
// An einsum equation with the sizes of its letters, from the shapes of its operands. parse_einsum() calls fail() if
// they do not match.
struct ParsedEinsum {
  std::vector<std::string> operand_letters;  // letters, with the ellipsis expanded
  std::string output_letters;
  std::vector<std::pair<char, std::int64_t>> size_by_letter;
};
ParsedEinsum parse_einsum(LayerCall& call, std::string_view equation, const std::vector<Shape>& shapes);

}  // namespace joulemap::predict::keras
