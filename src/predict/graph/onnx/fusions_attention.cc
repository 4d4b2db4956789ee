// SPDX-License-Identifier: Apache-2.0
//
// Fuses attention written as product, softmax and product, with scales, masks and biases in between.
#include <algorithm>

#include "predict/graph/onnx/fusions.h"

namespace joulemap::predict::onnx {
namespace {

constexpr int kMaxAttentionPatternDepth = 8;

bool is_step_of_any_type(Program& program, int step, std::initializer_list<std::string_view> types) {
  return std::any_of(types.begin(), types.end(),
                     [&](std::string_view type) { return is_step_of_type(program, step, type); });
}

// Searches backwards from the softmax for the product of queries and keys. Appends the steps on the way to `parts`, the
// product last.
bool find_attention_scores(Program& program, int value, int depth, std::vector<int>& parts) {
  const int step = producer_step(program, value);
  if (step == kNoIndex || depth > kMaxAttentionPatternDepth || single_consumer_step(program, value) == kNoIndex)
    return false;
  if (is_step_of_type(program, step, "MatMul")) {
    const std::vector<int>& inputs = find_step(program, step).inputs;
    const bool are_inputs_computed =
        !find_value(program, inputs[0]).is_constant && !find_value(program, inputs[1]).is_constant;
    if (!are_inputs_computed || find_value(program, inputs[1]).sizes->size() < 3) return false;
    parts.push_back(step);
    return true;
  }
  const bool passes = is_step_of_any_type(
      program, step,
      {"Add", "Sub", "Mul", "Div", "Where", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Max", "Min", "Transpose"});
  if (!passes) return false;
  const std::int64_t elements = onnx_element_count(*find_value(program, output_value_of_step(program, step)).sizes);
  const std::vector<int> inputs = find_step(program, step).inputs;
  if (inputs.size() > 3) return false;
  for (const int input : inputs) {
    if (input == kNoIndex || onnx_element_count(*find_value(program, input).sizes) != elements) continue;
    const std::size_t initial_part_count = parts.size();
    parts.push_back(step);
    if (find_attention_scores(program, input, depth + 1, parts)) return true;
    parts.resize(initial_part_count);
  }
  return false;
}

// Skips the IsNaN and Where with which an exporter replaces the NaN of a fully masked softmax row by 0. Returns the
// value after them.
int skip_nan_guard(Program& program, int value, std::vector<int>& parts) {
  const std::vector<int>& consumers = find_value(program, value).consumer_steps;
  if (consumers.size() != 2 || find_value(program, value).is_output) return value;
  for (const int test : consumers) {
    if (!is_step_of_type(program, test, "IsNaN")) continue;
    const int choice = single_consumer_step(program, output_value_of_step(program, test));
    if (!is_step_of_type(program, choice, "Where") ||
        std::find(consumers.begin(), consumers.end(), choice) == consumers.end())
      continue;
    parts.push_back(test);
    parts.push_back(choice);
    return output_value_of_step(program, choice);
  }
  return value;
}

// Searches forward from the softmax for the product with the values; kNoIndex if there is none.
int find_attention_output(Program& program, int softmax, std::vector<int>& parts) {
  int value = output_value_of_step(program, softmax);
  for (int depth = 0; depth < kMaxAttentionPatternDepth; ++depth) {
    value = skip_nan_guard(program, value, parts);
    const int next_step = single_consumer_step(program, value);
    if (is_step_of_type(program, next_step, "MatMul")) {
      const std::vector<int>& inputs = find_step(program, next_step).inputs;
      return inputs[0] == value && inputs[1] != value && !find_value(program, inputs[1]).is_constant ? next_step
                                                                                                     : kNoIndex;
    }
    if (!is_step_of_any_type(program, next_step, {"Cast", "Reshape", "Unsqueeze", "Squeeze", "Where"})) return kNoIndex;
    parts.push_back(next_step);
    value = output_value_of_step(program, next_step);
  }
  return kNoIndex;
}

// Skips scales of queries and keys, and with `is_transposition_allowed` a transposition of keys, which the attention
// kernel includes. Returns the value before them.
int skip_scaling_steps(Program& program, int value, bool is_transposition_allowed, std::vector<int>& parts) {
  for (int depth = 0; depth < 3; ++depth) {
    const int step = producer_step(program, value);
    const bool scales =
        is_step_of_any_type(program, step, {"Mul", "Div"}) && input_of_scaling_step(program, step) != kNoIndex;
    const bool transposes = is_transposition_allowed && is_step_of_type(program, step, "Transpose");
    if ((!scales && !transposes) || single_consumer_step(program, value) == kNoIndex) break;
    parts.push_back(step);
    value = scales ? input_of_scaling_step(program, step) : find_step(program, step).inputs[0];
    is_transposition_allowed = is_transposition_allowed && !transposes;
  }
  return value;
}

bool is_softmax_over_last_axis(Program& program, const ProgramStep& softmax) {
  const std::size_t rank = find_value(program, softmax.inputs[0]).sizes->size();
  const std::int64_t axis = integer_attribute(*softmax.node, "axis", -1);
  return axis == -1 || axis + 1 == static_cast<std::int64_t>(rank);
}

AttentionSizes fused_attention_sizes(Program& program, int scores, int product) {
  const Sizes& scores_sizes = *find_value(program, output_value_of_step(program, scores)).sizes;
  const Sizes& queries = *find_value(program, find_step(program, scores).inputs[0]).sizes;
  const Sizes& result = *find_value(program, output_value_of_step(program, product)).sizes;
  const std::size_t rank = scores_sizes.size();
  AttentionSizes sizes{.query_count = scores_sizes[rank - 2],
                       .key_count = scores_sizes[rank - 1],
                       .width_per_head = queries.back(),
                       .value_width_per_head = result.back()};
  const std::int64_t matrix_count = product_of_sizes(scores_sizes, 0, rank - 2);
  sizes.head_count = rank >= 4 ? scores_sizes[rank - 3] : 1;
  if (rank == 3 && program.batch_size > 0 && matrix_count % program.batch_size == 0)
    sizes.head_count = matrix_count / program.batch_size;
  sizes.batch_size = sizes.head_count == 0 ? 0 : matrix_count / sizes.head_count;
  sizes.key_head_count = sizes.head_count;
  return sizes;
}

}  // namespace

bool fuse_attention(Program& program, int step) {
  if (!is_step_of_type(program, step, "Softmax") || !is_softmax_over_last_axis(program, find_step(program, step)))
    return false;
  std::vector<int> parts;
  if (!find_attention_scores(program, find_step(program, step).inputs[0], 0, parts)) return false;
  const int scores = parts.back();
  parts.push_back(step);
  const int product = find_attention_output(program, step, parts);
  if (product == kNoIndex || product <= scores) return false;
  for (const int matrices : {scores, product}) {
    if (find_value(program, output_value_of_step(program, matrices)).sizes->size() < 2) return false;
  }
  const AttentionSizes sizes = fused_attention_sizes(program, scores, product);
  const int queries = skip_scaling_steps(program, find_step(program, scores).inputs[0], false, parts);
  const int keys = skip_scaling_steps(program, find_step(program, scores).inputs[1], true, parts);
  const int values = find_step(program, product).inputs[1];
  parts.push_back(product);
  if (!fuse_steps(program, parts, product, "Attention", {queries, keys, values}, step)) return false;
  find_step(program, product).attention_sizes = sizes;
  return true;
}

}  // namespace joulemap::predict::onnx
