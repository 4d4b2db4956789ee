// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/fusions.h"

#include <algorithm>

namespace joulemap::predict::onnx {
namespace {

std::size_t index(int number) { return static_cast<std::size_t>(number); }

// Whether no step outside of `parts` reads an intermediate value, that is, an output of a part other than `last`.
bool is_closed(Program& program, const std::vector<int>& parts, int last) {
  const auto is_part = [&](int step) { return std::find(parts.begin(), parts.end(), step) != parts.end(); };
  for (const int part : parts) {
    if (part == last) continue;
    for (const int output : step_at(program, part).outputs) {
      const Value& value = value_at(program, output);
      if (value.is_output || value.consumers.size() > parts.size()) return false;
      if (!std::all_of(value.consumers.begin(), value.consumers.end(), is_part)) return false;
    }
  }
  return true;
}

}  // namespace

ProgramStep& step_at(Program& program, int step) { return program.steps[index(step)]; }

Value& value_at(Program& program, int value) { return program.values[index(value)]; }

int only_consumer(const Program& program, int value) {
  if (value == kNone) return kNone;
  const Value& at = program.values[index(value)];
  if (at.is_output || at.consumers.empty()) return kNone;
  const int first = at.consumers[0];
  const bool alone = std::all_of(at.consumers.begin(), at.consumers.end(), [=](int other) { return other == first; });
  return alone && program.steps[index(first)].fused_into == kNone ? first : kNone;
}

int producer_of(const Program& program, int value) {
  const int step = value == kNone ? kNone : program.values[index(value)].producer;
  return step != kNone && program.steps[index(step)].fused_into == kNone ? step : kNone;
}

bool is_step(const Program& program, int step, std::string_view type) {
  return step != kNone && program.steps[index(step)].type == type && program.steps[index(step)].failure.empty() &&
         !program.steps[index(step)].outputs.empty();
}

std::optional<double> constant_scalar(const Program& program, int value) {
  if (value == kNone) return std::nullopt;
  const Value& at = program.values[index(value)];
  if (!at.numbers || at.numbers->size() != 1) return std::nullopt;
  return (*at.numbers)[0];
}

int other_input(const Program& program, int step, int value) {
  const std::vector<int>& inputs = program.steps[index(step)].inputs;
  if (inputs.size() != 2) return kNone;
  if (inputs[0] == value) return inputs[1];
  return inputs[1] == value ? inputs[0] : kNone;
}

int scaled_input(const Program& program, int step) {
  const std::vector<int>& inputs = program.steps[index(step)].inputs;
  if (inputs.size() != 2) return kNone;
  const auto is_single = [&](int value) {
    if (value == kNone) return false;
    const Value& at = program.values[index(value)];
    return at.constant && at.sizes && elements_of(*at.sizes) == 1;
  };
  if (is_single(inputs[1])) return inputs[0];
  return is_single(inputs[0]) && !is_step(program, step, "Div") ? inputs[1] : kNone;
}

bool fuse_steps(Program& program, const std::vector<int>& parts, int last, std::string_view type,
                std::vector<int> inputs, int main) {
  if (!is_closed(program, parts, last)) return false;
  std::string layer = step_at(program, main).layer;
  const Node* const node = step_at(program, main).node;
  for (const int part : parts) {
    if (part != last) step_at(program, part).fused_into = last;
  }
  ProgramStep& whole = step_at(program, last);
  whole.node = node;
  whole.type = type;
  whole.inputs = std::move(inputs);
  whole.layer = std::move(layer);
  for (const int input : whole.inputs) {
    if (input != kNone) value_at(program, input).consumers.push_back(last);
  }
  return true;
}

void fuse(Program& program) {
  for (const auto fusion : {&fuse_norm, &fuse_activation, &fuse_attention, &fuse_bias}) {
    for (int step = 0; step < static_cast<int>(program.steps.size()); ++step) {
      if (step_at(program, step).fused_into == kNone) fusion(program, step);
    }
  }
}

}  // namespace joulemap::predict::onnx
