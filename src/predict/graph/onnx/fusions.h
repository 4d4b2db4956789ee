// SPDX-License-Identifier: Apache-2.0
//
// Fuses steps that frameworks run as one kernel but exporters write as several nodes: norms, activations, attention,
// products with bias. The last step becomes the fused one, with the layer name of its main node; the others refer to it
// by fused_into. Each fusion inspects a bounded number of steps around one step.
#pragma once

#include <string_view>
#include <vector>

#include "predict/graph/onnx/program.h"

namespace joulemap::predict::onnx {

void fuse_known_patterns(Program& program);

// Each tries to fuse the pattern around a step; returns whether it did. fuse_known_patterns() calls them for every
// step.
bool fuse_norm(Program& program, int step);
bool fuse_bias(Program& program, int step);
bool fuse_activation(Program& program, int step);
bool fuse_attention(Program& program, int step);

// Helpers of all fusions.
ProgramStep& find_step(Program& program, int step);
Value& find_value(Program& program, int value);
// The only step that reads a value; kNoIndex if there are none or several, if it was fused into another step, or if the
// value is an output of the network.
int single_consumer_step(const Program& program, int value);
// The first output of a step.
inline int output_value_of_step(Program& program, int step) { return find_step(program, step).outputs[0]; }
int producer_step(const Program& program, int value);
bool is_step_of_type(const Program& program, int step, std::string_view type);
std::optional<double> constant_scalar_value(const Program& program, int value);
// The other input of a step with two inputs; kNoIndex if `value` is neither.
int other_input_value(const Program& program, int step, int value);
// The non-scalar input of a step that adds, multiplies or divides by a single number; else kNoIndex.
int input_of_scaling_step(const Program& program, int step);
// Fuses all `parts` into the step `last_step`, which gets the type, the inputs, and the layer of `main`. Returns false and
// changes nothing if another step reads an intermediate value.
bool fuse_steps(Program& program, const std::vector<int>& parts, int last_step, std::string_view type,
                std::vector<int> inputs, int main);

}  // namespace joulemap::predict::onnx
