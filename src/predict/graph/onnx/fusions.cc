// SPDX-License-Identifier: Apache-2.0
#include "predict/graph/onnx/fusions.h"

#include <algorithm>

namespace joulemap::predict::onnx {
namespace {

std::size_t to_vector_index(int number) { return static_cast<std::size_t>(number); }

// Whether no step outside of `parts` reads an intermediate value, that is, an output of a part other than `last_step`.
bool has_no_external_consumer(Program& program, const std::vector<int>& parts, int last_step) {
  const auto is_part = [&](int step) { return std::find(parts.begin(), parts.end(), step) != parts.end(); };
  for (const int part : parts) {
    if (part == last_step) continue;
    for (const int output : find_step(program, part).outputs) {
      const Value& value = find_value(program, output);
      if (value.is_output || value.consumer_steps.size() > parts.size()) return false;
      if (!std::all_of(value.consumer_steps.begin(), value.consumer_steps.end(), is_part)) return false;
    }
  }
  return true;
}

}  // namespace

ProgramStep& find_step(Program& program, int step) { return program.steps[to_vector_index(step)]; }

Value& find_value(Program& program, int value) { return program.values[to_vector_index(value)]; }

int single_consumer_step(const Program& program, int value) {
  if (value == kNoIndex) return kNoIndex;
  const Value& program_value = program.values[to_vector_index(value)];
  if (program_value.is_output || program_value.consumer_steps.empty()) return kNoIndex;
  const int first_consumer = program_value.consumer_steps[0];
  const bool is_single_consumer = std::all_of(program_value.consumer_steps.begin(), program_value.consumer_steps.end(),
                                              [=](int consumer_step) { return consumer_step == first_consumer; });
  return is_single_consumer && program.steps[to_vector_index(first_consumer)].fused_into == kNoIndex ? first_consumer
                                                                                                     : kNoIndex;
}

int producer_step(const Program& program, int value) {
  const int step = value == kNoIndex ? kNoIndex : program.values[to_vector_index(value)].producer_step;
  return step != kNoIndex && program.steps[to_vector_index(step)].fused_into == kNoIndex ? step : kNoIndex;
}

bool is_step_of_type(const Program& program, int step, std::string_view type) {
  return step != kNoIndex && program.steps[to_vector_index(step)].type == type &&
         program.steps[to_vector_index(step)].failure_reason.empty() &&
         !program.steps[to_vector_index(step)].outputs.empty();
}

std::optional<double> constant_scalar_value(const Program& program, int value) {
  if (value == kNoIndex) return std::nullopt;
  const Value& program_value = program.values[to_vector_index(value)];
  if (!program_value.constant_values || program_value.constant_values->size() != 1) return std::nullopt;
  return (*program_value.constant_values)[0];
}

int other_input_value(const Program& program, int step, int value) {
  const std::vector<int>& inputs = program.steps[to_vector_index(step)].inputs;
  if (inputs.size() != 2) return kNoIndex;
  if (inputs[0] == value) return inputs[1];
  return inputs[1] == value ? inputs[0] : kNoIndex;
}

int input_of_scaling_step(const Program& program, int step) {
  const std::vector<int>& inputs = program.steps[to_vector_index(step)].inputs;
  if (inputs.size() != 2) return kNoIndex;
  const auto is_single = [&](int value) {
    if (value == kNoIndex) return false;
    const Value& program_value = program.values[to_vector_index(value)];
    return program_value.is_constant && program_value.sizes && onnx_element_count(*program_value.sizes) == 1;
  };
  if (is_single(inputs[1])) return inputs[0];
  return is_single(inputs[0]) && !is_step_of_type(program, step, "Div") ? inputs[1] : kNoIndex;
}

bool fuse_steps(Program& program, const std::vector<int>& parts, int last_step, std::string_view type,
                std::vector<int> inputs, int main) {
  if (!has_no_external_consumer(program, parts, last_step)) return false;
  std::string layer = find_step(program, main).layer;
  const Node* const node = find_step(program, main).node;
  for (const int part : parts) {
    if (part != last_step) find_step(program, part).fused_into = last_step;
  }
  ProgramStep& fused_step = find_step(program, last_step);
  fused_step.node = node;
  fused_step.type = type;
  fused_step.inputs = std::move(inputs);
  fused_step.layer = std::move(layer);
  for (const int input : fused_step.inputs) {
    if (input != kNoIndex) find_value(program, input).consumer_steps.push_back(last_step);
  }
  return true;
}

void fuse_known_patterns(Program& program) {
  for (const auto fusion : {&fuse_norm, &fuse_activation, &fuse_attention, &fuse_bias}) {
    for (int step = 0; step < static_cast<int>(program.steps.size()); ++step) {
      if (find_step(program, step).fused_into == kNoIndex) fusion(program, step);
    }
  }
}

}  // namespace joulemap::predict::onnx
