// SPDX-License-Identifier: Apache-2.0
//
// What frameworks run as one kernel but exporters write as several nodes becomes one step again: norms, activations,
// attention, products with their bias. The last of the steps becomes the whole, under the name of its main node; the
// others know what they went into. Each fusion looks at a bounded neighbourhood of one step.
#pragma once

#include <string_view>
#include <vector>

#include "predict/graph/onnx/program.h"

namespace joulemap::predict::onnx {

void fuse(Program& program);

// By file; each is asked for every step and says whether it fused something.
bool fuse_norm(Program& program, int step);
bool fuse_bias(Program& program, int step);
bool fuse_activation(Program& program, int step);
bool fuse_attention(Program& program, int step);

// Questions that all of them ask.
Step& step_at(Program& program, int step);
Value& value_at(Program& program, int value);
// The one step that takes a value; kNone where several do, or where the network gives it.
int only_consumer(const Program& program, int value);
int producer_of(const Program& program, int value);
bool is_step(const Program& program, int step, std::string_view type);
std::optional<double> scalar_of(const Program& program, int value);
// The other one of two inputs; kNone where `value` is none of them.
int other_input(const Program& program, int step, int value);
// Of a step that adds, multiplies or divides by a single number: the other input.
int scaled_input(const Program& program, int step);
// All of `parts` become one with `last`, of this type, these inputs and the layer of `main`. Not where something else
// needs what lies between them: then nothing happens, and it says so.
bool join(Program& program, const std::vector<int>& parts, int last, std::string_view type, std::vector<int> inputs,
          int main);

}  // namespace joulemap::predict::onnx
