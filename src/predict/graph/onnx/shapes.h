// SPDX-License-Identifier: Apache-2.0
//
// The sizes of what a node gives, from the sizes of what it takes, operation by operation; and its numbers, where they
// hang on sizes and constants alone, as the targets of reshapes do. Pure functions; a node that makes no sense is an
// Error, one of an operation that is not known too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/graph/onnx/program.h"

namespace joulemap::predict::onnx {

// What a node of a file of a fixed batch takes and gives with that batch, where another was asked for: tells which
// dimension of a stored target is the batch.
struct AtFileBatch {
  std::vector<const Value*> inputs;
  std::vector<const Value*> outputs;
};

// One node. `inputs` has null where none is given; their sizes are known. `outputs` are there already, with the type of
// the first input.
struct Inference {
  const Node& node;
  std::int64_t opset = 0;
  std::vector<const Value*> inputs;
  std::vector<Value> outputs;
  const AtFileBatch* before = nullptr;
  std::vector<std::string>* notes = nullptr;

  bool has(std::size_t place) const { return place < inputs.size() && inputs[place] != nullptr; }
  const Sizes& sizes(std::size_t place) const { return *inputs[place]->sizes; }
  // Whole numbers of a constant input, clamped to what a size can be; nothing where they are not known.
  std::optional<Sizes> integers(std::size_t place) const;
  void give(Sizes sizes, std::size_t place = 0) {
    if (place < outputs.size()) outputs[place].sizes = std::move(sizes);
  }
};

using Infer = Status (*)(Inference& at);
struct KnownNode {
  std::string_view type;
  Infer infer;
  std::size_t least_inputs;
  std::string_view domain = {};
};

// By file: element by element, layouts, and what networks compute with.
const KnownNode* find_element_node(std::string_view type, std::string_view domain);
const KnownNode* find_layout_node(std::string_view type, std::string_view domain);
const KnownNode* find_index_node(std::string_view type, std::string_view domain);
const KnownNode* find_network_node(std::string_view type, std::string_view domain);
const KnownNode* find_other_node(std::string_view type, std::string_view domain);

// Sizes and numbers of the outputs.
Status infer(Inference& at);

// The numbers of an output whose sizes are known, of inputs whose numbers are known.
void fold_numbers(Inference& at);

Error misfit(std::string message);
// Of an axis that may be counted from behind.
Result<std::size_t> axis_of(std::int64_t axis, std::size_t rank);
Result<Sizes> broadcast(const Sizes& a, const Sizes& b);
// A list of axes, by attribute or, in newer opsets, by input; each below the rank.
Result<std::vector<std::size_t>> axes_of(const Inference& at, std::size_t input, std::size_t rank);

// The target of a reshape or an expansion that was stored with the file's batch, for another batch.
Result<Sizes> rescaled_target(const Inference& at, Sizes target);

}  // namespace joulemap::predict::onnx
