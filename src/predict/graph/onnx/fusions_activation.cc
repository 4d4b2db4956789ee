// SPDX-License-Identifier: Apache-2.0
//
// Fuses activations that exporters write as arithmetic: GELU with erf or tanh, SiLU, HardSwish, Mish.
#include <algorithm>

#include "predict/graph/onnx/fusions.h"

namespace joulemap::predict::onnx {
namespace {

// Whether the value is x, or x times or divided by a number. Appends the scaling step to `parts`.
bool is_scaled_copy(Program& program, int value, int x, std::vector<int>& parts) {
  if (value == x) return true;
  const int step = producer_step(program, value);
  if ((!is_step_of_type(program, step, "Mul") && !is_step_of_type(program, step, "Div")) ||
      input_of_scaling_step(program, step) != x)
    return false;
  if (single_consumer_step(program, value) == kNoIndex) return false;
  parts.push_back(step);
  return true;
}

// Steps of a product with x, including a scaling of x by a number; `x` is the value x, or kNoIndex.
struct GeluProductMatch {
  std::vector<int> parts;
  int x = kNoIndex;
};

// Matches (1 + f) * x * 0.5, with the factors in any order, starting at the sum.
GeluProductMatch match_gelu_product(Program& program, int sum) {
  GeluProductMatch product;
  product.parts.push_back(sum);
  int value = output_value_of_step(program, sum);
  for (int factors = 0; factors < 2; ++factors) {
    const int next_step = single_consumer_step(program, value);
    if (!is_step_of_type(program, next_step, "Mul")) break;
    const int other_factor = other_input_value(program, next_step, value);
    if (other_factor == kNoIndex) break;
    if (!constant_scalar_value(program, other_factor)) {
      if (product.x != kNoIndex) break;
      product.x = other_factor;
      const int scaling = producer_step(program, other_factor);
      const bool scales =
          is_step_of_type(program, scaling, "Mul") && input_of_scaling_step(program, scaling) != kNoIndex;
      if (scales && single_consumer_step(program, other_factor) == next_step) {
        product.parts.push_back(scaling);
        product.x = input_of_scaling_step(program, scaling);
      }
    }
    product.parts.push_back(next_step);
    value = output_value_of_step(program, next_step);
  }
  return product;
}

// Whether a value is a polynomial of x: sums, products and powers, of at most a dozen steps, which are appended to
// `parts`.
bool is_gelu_polynomial(Program& program, int value, int x, std::vector<int>& parts) {
  if (value == x || constant_scalar_value(program, value)) return true;
  const int step = producer_step(program, value);
  const bool is_polynomial_step = is_step_of_type(program, step, "Mul") || is_step_of_type(program, step, "Add") ||
                                  is_step_of_type(program, step, "Pow");
  if (!is_polynomial_step || parts.size() >= 12) return false;
  if (std::find(parts.begin(), parts.end(), step) != parts.end()) return true;
  parts.push_back(step);
  const std::vector<int> inputs = find_step(program, step).inputs;
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](int input) { return is_gelu_polynomial(program, input, x, parts); });
}

bool fuse_gelu(Program& program, int main_step, bool uses_tanh) {
  const int sum = single_consumer_step(program, output_value_of_step(program, main_step));
  if (!is_step_of_type(program, sum, "Add") || input_of_scaling_step(program, sum) == kNoIndex) return false;
  GeluProductMatch product = match_gelu_product(program, sum);
  if (product.x == kNoIndex) return false;
  std::vector<int> gelu_parts;
  const int argument = find_step(program, main_step).inputs[0];
  const bool fits = uses_tanh ? is_gelu_polynomial(program, argument, product.x, gelu_parts) && gelu_parts.size() >= 3
                              : is_scaled_copy(program, argument, product.x, gelu_parts);
  if (!fits) return false;
  gelu_parts.push_back(main_step);
  gelu_parts.insert(gelu_parts.end(), product.parts.begin(), product.parts.end());
  const int last_step = *std::max_element(gelu_parts.begin(), gelu_parts.end());
  return fuse_steps(program, gelu_parts, last_step, "Gelu", {product.x}, main_step);
}

// Fuses x * f(x), where `gate_steps` are the steps of f.
bool fuse_gate(Program& program, const std::vector<int>& gate_steps, std::string_view type) {
  const int x = find_step(program, gate_steps.front()).inputs[0];
  const int value = output_value_of_step(program, gate_steps.back());
  const int product = single_consumer_step(program, value);
  if (!is_step_of_type(program, product, "Mul") || other_input_value(program, product, value) != x) return false;
  std::vector<int> parts = gate_steps;
  parts.push_back(product);
  return fuse_steps(program, parts, product, type, {x}, gate_steps.front());
}

// Fuses x * clip(x + 3, 0, 6) / 6.
bool fuse_hard_swish(Program& program, int clip) {
  const int sum = producer_step(program, find_step(program, clip).inputs[0]);
  if (!is_step_of_type(program, sum, "Add") || input_of_scaling_step(program, sum) == kNoIndex) return false;
  const int x = input_of_scaling_step(program, sum);
  if (single_consumer_step(program, output_value_of_step(program, sum)) != clip) return false;
  std::vector<int> parts = {sum, clip};
  bool has_argument_factor = false;
  for (int factors = 0; factors < 2; ++factors) {
    const int value = output_value_of_step(program, parts.back());
    const int next_step = single_consumer_step(program, value);
    const bool is_division =
        is_step_of_type(program, next_step, "Div") && input_of_scaling_step(program, next_step) == value;
    const bool scales = is_division || (is_step_of_type(program, next_step, "Mul") &&
                                        input_of_scaling_step(program, next_step) == value);
    const bool is_multiplication =
        is_step_of_type(program, next_step, "Mul") && other_input_value(program, next_step, value) == x;
    if (!scales && !is_multiplication) break;
    has_argument_factor = has_argument_factor || is_multiplication;
    parts.push_back(next_step);
  }
  if (!has_argument_factor || parts.size() != 4) return false;
  return fuse_steps(program, parts, parts.back(), "HardSwish", {x}, clip);
}

}  // namespace

bool fuse_activation(Program& program, int step) {
  if (find_step(program, step).inputs.empty() || find_step(program, step).inputs[0] == kNoIndex) return false;
  if (is_step_of_type(program, step, "Erf")) return fuse_gelu(program, step, false);
  if (is_step_of_type(program, step, "Tanh")) return fuse_gelu(program, step, true);
  if (is_step_of_type(program, step, "Sigmoid")) return fuse_gate(program, {step}, "Swish");
  if (is_step_of_type(program, step, "HardSigmoid")) return fuse_gate(program, {step}, "HardSwish");
  if (is_step_of_type(program, step, "Clip")) return fuse_hard_swish(program, step);
  if (!is_step_of_type(program, step, "Softplus")) return false;
  const int tanh = single_consumer_step(program, output_value_of_step(program, step));
  return is_step_of_type(program, tanh, "Tanh") && fuse_gate(program, {step, tanh}, "Mish");
}

}  // namespace joulemap::predict::onnx
