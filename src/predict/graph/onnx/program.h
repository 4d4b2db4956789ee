// SPDX-License-Identifier: Apache-2.0
//
// A model as a flat list of steps in their order, with the sizes of every value: functions are inlined, branches are
// taken, and what can be computed from sizes alone is computed. Between the walk that makes it (walk.h), the fusions
// that change it and the operations that are made of it. Values and steps are told by their index. Nodes belong to the
// model, which has to outlive the program.
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

inline constexpr int kNone = -1;
// More than any tensor has.
inline constexpr std::size_t kMostDimensions = 64;

struct Value {
  std::string_view name;
  std::optional<Sizes> sizes;  // none: not known
  Type type = Type::undefined;
  std::optional<std::vector<double>> numbers;  // of small ones that hang on sizes and constants alone
  bool constant = false;                       // the same in every run
  int weight = kNone;    // where this is a weight, transposed or reshaped at most: the value that was stored
  int producer = kNone;  // the step that makes it
  std::vector<int> consumers;
  bool is_output = false;
};

struct Step {
  const Node* node = nullptr;
  std::string_view type;    // the node's, or what it was fused into: "Gelu"
  std::vector<int> inputs;  // kNone: not given
  std::vector<int> outputs;
  std::string layer;
  std::int64_t repeat = 1;                  // in a loop: how often
  std::string failure;                      // not empty: its sizes are not known, and this is why
  int fused_into = kNone;                   // part of another step now
  std::int64_t normed = 0;                  // of a fused norm: how many numbers are normed together
  std::optional<AttentionSizes> attention;  // of fused attention
};

struct Program {
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<std::string> notes;
  std::deque<Node> nodes;  // of functions, with the attributes of their callers
  std::int64_t batch = 1;  // the leading dimension of the first input
};

inline bool is_given(const std::vector<int>& list, std::size_t place) {
  return place < list.size() && list[place] != kNone;
}

// 1 for none; never more than kMostElements + 1, however large.
std::int64_t elements_of(const Sizes& sizes);
// Whether the sizes can be believed, also those beside a dimension of 0.
bool is_possible(const Sizes& sizes);
std::int64_t product_of(const Sizes& sizes, std::size_t begin, std::size_t end);
std::string sizes_text(const Sizes& sizes);  // "1x3x224x224"

// What changes the order or the number of dimensions only, so that a weight that went through it is a weight still.
bool is_layout(std::string_view type);

}  // namespace joulemap::predict::onnx
