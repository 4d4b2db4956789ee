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

struct NamedRule {
  std::string_view class_name;
  LayerRule rule;
};

std::span<const NamedRule> attention_rules();
std::span<const NamedRule> convolution_rules();
std::span<const NamedRule> dense_rules();
std::span<const NamedRule> element_rules();
std::span<const NamedRule> function_rules();
std::span<const NamedRule> image_rules();
std::span<const NamedRule> merge_rules();
std::span<const NamedRule> normalization_rules();
std::span<const NamedRule> pooling_rules();
std::span<const NamedRule> recurrent_rules();
std::span<const NamedRule> shape_rules();

// The rule of a class; null if there is none.
LayerRule find_rule(std::string_view class_name);

// ---- helpers of rules in several source files
void emit_dense(LayerCall& call, std::int64_t rows, std::int64_t in, std::int64_t out, bool has_bias,
                std::int64_t count = 1);
void emit_binary(LayerCall& call, Kind kind, const Shape& out, const Shape& one, const Shape& other);
// An einsum equation with the sizes of its letters, from the shapes of its operands. read_einsum() calls fail() if they
// do not match.
struct Einsum {
  std::vector<std::string> operands;  // letters, with the ellipsis expanded
  std::string out;
  std::vector<std::pair<char, std::int64_t>> sizes;
};
Einsum read_einsum(LayerCall& call, std::string_view equation, const std::vector<Shape>& shapes);

}  // namespace joulemap::predict::keras
