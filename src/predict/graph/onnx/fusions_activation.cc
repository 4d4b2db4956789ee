// SPDX-License-Identifier: Apache-2.0
//
// Fuses activations that exporters write as arithmetic: GELU with erf or tanh, SiLU, HardSwish, Mish.
#include <algorithm>

#include "predict/graph/onnx/fusions.h"

namespace joulemap::predict::onnx {
namespace {

int output_of(Program& program, int step) { return step_at(program, step).outputs[0]; }

// Whether the value is x, or x times or divided by a number. Appends the scaling step to `parts`.
bool is_scaled(Program& program, int value, int x, std::vector<int>& parts) {
  if (value == x) return true;
  const int step = producer_of(program, value);
  if ((!is_step(program, step, "Mul") && !is_step(program, step, "Div")) || scaled_input(program, step) != x)
    return false;
  if (only_consumer(program, value) == kNone) return false;
  parts.push_back(step);
  return true;
}

// Steps of a product with x, including a scaling of x by a number; `x` is the value x, or kNone.
struct Product {
  std::vector<int> parts;
  int x = kNone;
};

// Matches (1 + f) * x * 0.5, with the factors in any order, starting at the sum.
Product half_of_x_times(Program& program, int sum) {
  Product product;
  product.parts.push_back(sum);
  int value = output_of(program, sum);
  for (int factors = 0; factors < 2; ++factors) {
    const int next = only_consumer(program, value);
    if (!is_step(program, next, "Mul")) break;
    const int other = other_input(program, next, value);
    if (other == kNone) break;
    if (!constant_scalar(program, other)) {
      if (product.x != kNone) break;
      product.x = other;
      const int scaling = producer_of(program, other);
      const bool scales = is_step(program, scaling, "Mul") && scaled_input(program, scaling) != kNone;
      if (scales && only_consumer(program, other) == next) {
        product.parts.push_back(scaling);
        product.x = scaled_input(program, scaling);
      }
    }
    product.parts.push_back(next);
    value = output_of(program, next);
  }
  return product;
}

// Whether a value is a polynomial of x: sums, products and powers, of at most a dozen steps, which are appended to
// `parts`.
bool is_polynomial(Program& program, int value, int x, std::vector<int>& parts) {
  if (value == x || constant_scalar(program, value)) return true;
  const int step = producer_of(program, value);
  const bool known = is_step(program, step, "Mul") || is_step(program, step, "Add") || is_step(program, step, "Pow");
  if (!known || parts.size() >= 12) return false;
  if (std::find(parts.begin(), parts.end(), step) != parts.end()) return true;
  parts.push_back(step);
  const std::vector<int> inputs = step_at(program, step).inputs;
  return std::all_of(inputs.begin(), inputs.end(), [&](int input) { return is_polynomial(program, input, x, parts); });
}

bool fuse_gelu(Program& program, int main_step, bool by_tanh) {
  const int sum = only_consumer(program, output_of(program, main_step));
  if (!is_step(program, sum, "Add") || scaled_input(program, sum) == kNone) return false;
  Product product = half_of_x_times(program, sum);
  if (product.x == kNone) return false;
  std::vector<int> before;
  const int argument = step_at(program, main_step).inputs[0];
  const bool fits = by_tanh ? is_polynomial(program, argument, product.x, before) && before.size() >= 3
                            : is_scaled(program, argument, product.x, before);
  if (!fits) return false;
  before.push_back(main_step);
  before.insert(before.end(), product.parts.begin(), product.parts.end());
  const int last = *std::max_element(before.begin(), before.end());
  return fuse_steps(program, before, last, "Gelu", {product.x}, main_step);
}

// Fuses x * f(x), where `gate` are the steps of f.
bool fuse_gate(Program& program, const std::vector<int>& gate, std::string_view type) {
  const int x = step_at(program, gate.front()).inputs[0];
  const int value = output_of(program, gate.back());
  const int product = only_consumer(program, value);
  if (!is_step(program, product, "Mul") || other_input(program, product, value) != x) return false;
  std::vector<int> parts = gate;
  parts.push_back(product);
  return fuse_steps(program, parts, product, type, {x}, gate.front());
}

// Fuses x * clip(x + 3, 0, 6) / 6.
bool fuse_hard_swish(Program& program, int clip) {
  const int sum = producer_of(program, step_at(program, clip).inputs[0]);
  if (!is_step(program, sum, "Add") || scaled_input(program, sum) == kNone) return false;
  const int x = scaled_input(program, sum);
  if (only_consumer(program, output_of(program, sum)) != clip) return false;
  std::vector<int> parts = {sum, clip};
  bool has_x = false;
  for (int factors = 0; factors < 2; ++factors) {
    const int value = output_of(program, parts.back());
    const int next = only_consumer(program, value);
    const bool divides = is_step(program, next, "Div") && scaled_input(program, next) == value;
    const bool scales = divides || (is_step(program, next, "Mul") && scaled_input(program, next) == value);
    const bool multiplies = is_step(program, next, "Mul") && other_input(program, next, value) == x;
    if (!scales && !multiplies) break;
    has_x = has_x || multiplies;
    parts.push_back(next);
  }
  if (!has_x || parts.size() != 4) return false;
  return fuse_steps(program, parts, parts.back(), "HardSwish", {x}, clip);
}

}  // namespace

bool fuse_activation(Program& program, int step) {
  if (step_at(program, step).inputs.empty() || step_at(program, step).inputs[0] == kNone) return false;
  if (is_step(program, step, "Erf")) return fuse_gelu(program, step, false);
  if (is_step(program, step, "Tanh")) return fuse_gelu(program, step, true);
  if (is_step(program, step, "Sigmoid")) return fuse_gate(program, {step}, "Swish");
  if (is_step(program, step, "HardSigmoid")) return fuse_gate(program, {step}, "HardSwish");
  if (is_step(program, step, "Clip")) return fuse_hard_swish(program, step);
  if (!is_step(program, step, "Softplus")) return false;
  const int tanh = only_consumer(program, output_of(program, step));
  return is_step(program, tanh, "Tanh") && fuse_gate(program, {step, tanh}, "Mish");
}

}  // namespace joulemap::predict::onnx
