// SPDX-License-Identifier: Apache-2.0
//
// Shape inference by node type: computes the sizes of a node's outputs from those of its inputs. Also computes numbers
// that depend on sizes and constants only, such as target shapes. Pure functions; an invalid node or an unknown
// operation is an Error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/graph/onnx/program.h"

namespace joulemap::predict::onnx {

// Inputs and outputs of the same node with the file's fixed batch, if another batch was requested. A comparison shows
// which dimension of a stored target shape is the batch.
struct FileBatchValues {
  std::vector<const Value*> inputs;
  std::vector<const Value*> outputs;
};

// State of the inference of one node. Omitted inputs are null; the sizes of the others are known. The caller creates
// `outputs` with the type of the first input.
struct ShapeInference {
  const Node& node;
  std::int64_t opset_version = 0;
  std::vector<const Value*> inputs;
  std::vector<Value> outputs;
  const FileBatchValues* values_at_file_batch = nullptr;
  std::vector<std::string>* notes = nullptr;

  bool has_input(std::size_t position) const { return position < inputs.size() && inputs[position] != nullptr; }
  const Sizes& input_sizes(std::size_t position) const { return *inputs[position]->sizes; }
  // Integers of a constant input, clamped to valid sizes; empty if unknown.
  std::optional<Sizes> constant_input_integers(std::size_t position) const;
  void set_output_sizes(Sizes sizes, std::size_t position = 0) {
    if (position < outputs.size()) outputs[position].sizes = std::move(sizes);
  }
};

using InferShapesFunction = Status (*)(ShapeInference& at);
struct NodeRule {
  std::string_view type;
  InferShapesFunction infer_shapes;
  std::size_t min_inputs;
  std::string_view domain = {};
};

// The rule of a node type, or null. Each function is in a source file of its own: element-wise, layout, index, network
// and other nodes.
const NodeRule* find_elementwise_node_rule(std::string_view type, std::string_view domain);
const NodeRule* find_layout_node_rule(std::string_view type, std::string_view domain);
const NodeRule* find_indexing_node_rule(std::string_view type, std::string_view domain);
const NodeRule* find_convolution_and_matmul_rule(std::string_view type, std::string_view domain);
const NodeRule* find_miscellaneous_node_rule(std::string_view type, std::string_view domain);

// Computes sizes and numbers of the outputs.
Status infer_shapes(ShapeInference& shape_inference);

// Computes the numbers of an output with known sizes, if the numbers of the inputs are known.
void fold_constant_outputs(ShapeInference& shape_inference);

Error invalid_node(std::string message);
// Resolves an axis that may be negative; an Error if it is out of range.
Result<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank);
Result<Sizes> broadcast_sizes(const Sizes& left_sizes, const Sizes& right_sizes);
// Axes from the attribute or, in newer opsets, from the input at index `input`: sorted, each below `rank`.
Result<std::vector<std::size_t>> read_axes(const ShapeInference& shape_inference, std::size_t input, std::size_t rank);

// Converts the target shape of a reshape or expand, which may contain the file's batch as a constant, to the requested
// batch.
Result<Sizes> rescale_target_to_batch(const ShapeInference& shape_inference, Sizes target);

}  // namespace joulemap::predict::onnx
