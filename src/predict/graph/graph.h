// SPDX-License-Identifier: Apache-2.0
//
// A network as a list of forward operations, whatever file it was read from: what predictions are made of. The readers
// (onnx/, keras/, torch_list.h) are pure functions from bytes to a Graph; what cannot be read at all is an Error with
// its remedy, what can be read but not understood stands in the list as Kind::unknown and in `unknown`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predict/graph/operation.h"

namespace joulemap::predict {

// Nothing larger is believed: products of such sizes still fit 64 bits with room, and no GPU holds such a tensor.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 46;

struct InputShape {
  std::string name;                 // empty: the inputs in their order
  std::vector<std::int64_t> sizes;  // with the batch
};

struct GraphOptions {
  std::optional<std::int64_t> batch;  // instead of the leading dimension of every input
  std::vector<InputShape> inputs;     // instead of what the file says; `batch` still goes before
  Dtype dtype = Dtype::fp32;          // what numbers with fractions are computed in
};

struct UnknownOperation {
  std::string layer;
  std::string source;    // what the graph calls it
  std::string reason;    // a sentence part: "an operation of the domain com.acme"
  bool bounded = false;  // its sizes are known, so that what it draws at most can be said
};

struct Graph {
  std::string name;
  std::string format;  // "onnx", "keras", "torch"
  std::vector<Operation> operations;
  std::vector<UnknownOperation> unknown;
  std::vector<std::string> notes;   // what a reader of the prediction should know: "batch 8 instead of the file's 1"
  std::int64_t weight_tensors = 0;  // trainable, for the optimizer's step
  std::int64_t weight_elements = 0;
  std::int64_t python_calls = 0;  // of functions, in a forward pass; 0 where the file does not tell
};

}  // namespace joulemap::predict
