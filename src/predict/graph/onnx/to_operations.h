// SPDX-License-Identifier: Apache-2.0
//
// Translates a program to the operations of predict/graph/operation.h: the kind of each step, its type, its gradients,
// and the weights. Pure functions. A step without a translation becomes Kind::unknown, with its sizes if they are
// known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predict/graph/graph.h"
#include "predict/graph/onnx/program.h"

namespace joulemap::predict::onnx {

// Appends operations, unknown operations and notes to a graph, and counts its weights.
void add_operations(const Program& program, const GraphOptions& options, Graph& graph);

// One operation of a step; most steps have one.
struct TranslatedOperation {
  Kind kind = Kind::unknown;
  std::string form;
  OperationParameters parameters;
  std::int64_t repeat_count = 1;
};
using Translations = std::optional<std::vector<TranslatedOperation>>;

// A step whose input and output sizes are all known, with access to them.
struct SizedStep {
  const Program& program;
  const ProgramStep& step;
  Dtype real_dtype = Dtype::fp32;  // type in which float32 data is computed

  std::size_t input_count() const { return step.inputs.size(); }
  bool has_input(std::size_t position) const { return has_value_at(step.inputs, position); }
  const Value& input_value(std::size_t position) const {
    return program.values[static_cast<std::size_t>(step.inputs[position])];
  }
  const Value& output_value() const { return program.values[static_cast<std::size_t>(step.outputs[0])]; }
  const Sizes& input_sizes(std::size_t position = 0) const { return *input_value(position).sizes; }
  const Sizes& output_sizes() const { return *output_value().sizes; }
  const ProgramStep* producer(std::size_t position) const;
};

// Each is in a source file of its own. Empty if it does not know the type of the step.
Translations translate_product_node(const SizedStep& sized_step);
Translations translate_image_node(const SizedStep& sized_step);
Translations translate_layout_node(const SizedStep& sized_step);
Translations translate_elementwise_node(const SizedStep& sized_step);

// Sizes of a tensor as the parameters batch (first dimension), rows (second) and width (product of all others). The
// last dimension is always part of width; missing ones are 1.
OperationParameters tensor_parameters(const Sizes& sizes);
const Sizes& larger_tensor_sizes(const Sizes& left_sizes, const Sizes& right_sizes);
std::vector<TranslatedOperation> make_single_operation(Kind kind, std::string_view operation_form,
                                                       OperationParameters parameters);

}  // namespace joulemap::predict::onnx
