// SPDX-License-Identifier: Apache-2.0
//
// Fuses attention written as product, softmax and product, with scales, masks and biases in between.
#include <algorithm>

#include "predict/graph/onnx/fusions.h"

namespace joulemap::predict::onnx {
namespace {

constexpr int kDeepest = 8;

int output_of(Program& program, int step) { return step_at(program, step).outputs[0]; }

bool is_any(Program& program, int step, std::initializer_list<std::string_view> types) {
  return std::any_of(types.begin(), types.end(), [&](std::string_view type) { return is_step(program, step, type); });
}

// Searches backwards from the softmax for the product of queries and keys. Appends the steps on the way to `parts`, the
// product last.
bool find_scores(Program& program, int value, int depth, std::vector<int>& parts) {
  const int step = producer_of(program, value);
  if (step == kNone || depth > kDeepest || only_consumer(program, value) == kNone) return false;
  if (is_step(program, step, "MatMul")) {
    const std::vector<int>& inputs = step_at(program, step).inputs;
    const bool of_computed = !value_at(program, inputs[0]).constant && !value_at(program, inputs[1]).constant;
    if (!of_computed || value_at(program, inputs[1]).sizes->size() < 3) return false;
    parts.push_back(step);
    return true;
  }
  const bool passes = is_any(
      program, step,
      {"Add", "Sub", "Mul", "Div", "Where", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Max", "Min", "Transpose"});
  if (!passes) return false;
  const std::int64_t elements = elements_of(*value_at(program, output_of(program, step)).sizes);
  const std::vector<int> inputs = step_at(program, step).inputs;
  if (inputs.size() > 3) return false;
  for (const int input : inputs) {
    if (input == kNone || elements_of(*value_at(program, input).sizes) != elements) continue;
    const std::size_t before = parts.size();
    parts.push_back(step);
    if (find_scores(program, input, depth + 1, parts)) return true;
    parts.resize(before);
  }
  return false;
}

// Skips the IsNaN and Where with which an exporter replaces the NaN of a fully masked softmax row by 0. Returns the
// value after them.
int guarded(Program& program, int value, std::vector<int>& parts) {
  const std::vector<int>& consumers = value_at(program, value).consumers;
  if (consumers.size() != 2 || value_at(program, value).is_output) return value;
  for (const int test : consumers) {
    if (!is_step(program, test, "IsNaN")) continue;
    const int choice = only_consumer(program, output_of(program, test));
    if (!is_step(program, choice, "Where") || std::find(consumers.begin(), consumers.end(), choice) == consumers.end())
      continue;
    parts.push_back(test);
    parts.push_back(choice);
    return output_of(program, choice);
  }
  return value;
}

// Searches forward from the softmax for the product with the values; kNone if there is none.
int find_product(Program& program, int softmax, std::vector<int>& parts) {
  int value = output_of(program, softmax);
  for (int depth = 0; depth < kDeepest; ++depth) {
    value = guarded(program, value, parts);
    const int next = only_consumer(program, value);
    if (is_step(program, next, "MatMul")) {
      const std::vector<int>& inputs = step_at(program, next).inputs;
      return inputs[0] == value && inputs[1] != value && !value_at(program, inputs[1]).constant ? next : kNone;
    }
    if (!is_any(program, next, {"Cast", "Reshape", "Unsqueeze", "Squeeze", "Where"})) return kNone;
    parts.push_back(next);
    value = output_of(program, next);
  }
  return kNone;
}

// Skips scales of queries and keys, and with `transposed` a transposition of keys, which the attention kernel includes.
// Returns the value before them.
int skip_scales(Program& program, int value, bool transposed, std::vector<int>& parts) {
  for (int depth = 0; depth < 3; ++depth) {
    const int step = producer_of(program, value);
    const bool scales = is_any(program, step, {"Mul", "Div"}) && scaled_input(program, step) != kNone;
    const bool transposes = transposed && is_step(program, step, "Transpose");
    if ((!scales && !transposes) || only_consumer(program, value) == kNone) break;
    parts.push_back(step);
    value = scales ? scaled_input(program, step) : step_at(program, step).inputs[0];
    transposed = transposed && !transposes;
  }
  return value;
}

bool is_over_last(Program& program, const ProgramStep& softmax) {
  const std::size_t rank = value_at(program, softmax.inputs[0]).sizes->size();
  const std::int64_t axis = integer_attribute(*softmax.node, "axis", -1);
  return axis == -1 || axis + 1 == static_cast<std::int64_t>(rank);
}

AttentionSizes sizes_of(Program& program, int scores, int product) {
  const Sizes& of_scores = *value_at(program, output_of(program, scores)).sizes;
  const Sizes& queries = *value_at(program, step_at(program, scores).inputs[0]).sizes;
  const Sizes& result = *value_at(program, output_of(program, product)).sizes;
  const std::size_t rank = of_scores.size();
  AttentionSizes sizes{.queries = of_scores[rank - 2],
                       .keys = of_scores[rank - 1],
                       .width = queries.back(),
                       .value_width = result.back()};
  const std::int64_t all = product_of(of_scores, 0, rank - 2);
  sizes.heads = rank >= 4 ? of_scores[rank - 3] : 1;
  if (rank == 3 && program.batch > 0 && all % program.batch == 0) sizes.heads = all / program.batch;
  sizes.batch = sizes.heads == 0 ? 0 : all / sizes.heads;
  sizes.key_heads = sizes.heads;
  return sizes;
}

}  // namespace

bool fuse_attention(Program& program, int step) {
  if (!is_step(program, step, "Softmax") || !is_over_last(program, step_at(program, step))) return false;
  std::vector<int> parts;
  if (!find_scores(program, step_at(program, step).inputs[0], 0, parts)) return false;
  const int scores = parts.back();
  parts.push_back(step);
  const int product = find_product(program, step, parts);
  if (product == kNone || product <= scores) return false;
  for (const int matrices : {scores, product}) {
    if (value_at(program, output_of(program, matrices)).sizes->size() < 2) return false;
  }
  const AttentionSizes sizes = sizes_of(program, scores, product);
  const int queries = skip_scales(program, step_at(program, scores).inputs[0], false, parts);
  const int keys = skip_scales(program, step_at(program, scores).inputs[1], true, parts);
  const int values = step_at(program, product).inputs[1];
  parts.push_back(product);
  if (!fuse_steps(program, parts, product, "Attention", {queries, keys, values}, step)) return false;
  step_at(program, product).attention = sizes;
  return true;
}

}  // namespace joulemap::predict::onnx
