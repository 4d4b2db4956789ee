// SPDX-License-Identifier: Apache-2.0
//
// What each class of Keras's layers does: a rule turns a call into operations and gives the shapes that come out. Tables by
// theme, one in each source; functions of keras.ops and of TensorFlow (TFOpLambda) stand in them under their name in
// lower case without underscores. Pure but for the LayerCall.
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

// Null where there is none.
LayerRule find_rule(std::string_view class_name);

// ---- what rules of several sources are made of
void emit_dense(LayerCall& call, std::int64_t rows, std::int64_t in, std::int64_t out, bool has_bias,
                std::int64_t count = 1);
void emit_pair(LayerCall& call, Kind kind, const Shape& out, const Shape& one, const Shape& other);
// The sizes of the equation's letters, by the shapes of its operands; fails where they do not fit.
struct Einsum {
  std::vector<std::string> operands;  // letters, an ellipsis spelled out
  std::string out;
  std::vector<std::pair<char, std::int64_t>> sizes;
};
Einsum read_einsum(LayerCall& call, std::string_view equation, const std::vector<Shape>& shapes);

}  // namespace joulemap::predict::keras
