// SPDX-License-Identifier: Apache-2.0
//
// A model as a flat list of steps in execution order, with the sizes of every value: functions are inlined, branches
// are resolved, and values that depend on sizes alone are computed. walk.h builds it, the fusions change it,
// to_operations.h reads it. Indices identify values and steps. Nodes belong to the model, which must outlive the
// program.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predict/graph/graph.h"
#include "predict/graph/onnx/contractions.h"
#include "predict/graph/onnx/onnx_model.h"

namespace joulemap::predict::onnx {

inline constexpr int kNoIndex = -1;
// Limit of dimensions, above that of any real tensor.
inline constexpr std::size_t kMaxOnnxDimensions = 64;

struct Value {
  std::string_view name;
  std::optional<Sizes> sizes;  // empty: unknown
  DataType type = DataType::undefined;
  std::optional<std::vector<double>> constant_values;  // of a small tensor that depends on sizes and constants only
  bool is_constant = false;                            // the same in every run
  int source_weight = kNoIndex;  // for a weight, possibly transposed or reshaped: the index of the stored value
  int producer_step = kNoIndex;  // the step that computes it
  std::vector<int> consumer_steps;
  bool is_output = false;
};

struct ProgramStep {
  const Node* node = nullptr;
  std::string_view type;    // the node's, or that of the fused step: "Gelu"
  std::vector<int> inputs;  // kNoIndex: omitted
  std::vector<int> outputs;
  std::string layer;
  std::int64_t repeat_count = 1;                  // iterations of the enclosing loops
  std::string failure_reason;                     // not empty: why its sizes are unknown
  int fused_into = kNoIndex;                      // index of the step that contains it
  std::int64_t normalized_element_count = 0;      // for a fused norm: number of elements normalized together
  std::optional<AttentionSizes> attention_sizes;  // for fused attention
};

struct Program {
  std::vector<Value> values;
  std::vector<ProgramStep> steps;
  std::vector<std::string> notes;
  std::deque<Node> copied_nodes;  // copies of function nodes with the attributes of their callers
  std::int64_t batch_size = 1;    // leading dimension of the first input
};

inline bool has_value_at(const std::vector<int>& value_ids, std::size_t position) {
  return position < value_ids.size() && value_ids[position] != kNoIndex;
}

// Number of elements; 1 without dimensions. Saturates at kMaxElements + 1.
std::int64_t onnx_element_count(const Sizes& sizes);
// Whether no size is negative and the tensor has at most kMaxOnnxDimensions and kMaxElements, with sizes of 0 counted
// as 1.
bool are_sizes_possible(const Sizes& sizes);
std::int64_t product_of_sizes(const Sizes& sizes, std::size_t begin, std::size_t end);
std::string sizes_text(const Sizes& sizes);  // "1x3x224x224"

// Whether a node type only changes the layout, type or extent of a tensor: if its input is a weight, so is its output.
bool is_layout_change(std::string_view type);

}  // namespace joulemap::predict::onnx
