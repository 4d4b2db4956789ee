// SPDX-License-Identifier: Apache-2.0
//
// A network as a list of forward operations, independent of its file format: the input of predictions. The readers
// (onnx/, keras/, torch_list.h) are pure functions from bytes to a Graph. An unreadable file is an Error with its
// remedy; a readable operation of unknown meaning becomes Kind::unknown in the list and an entry of
// `unknown_operations`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predict/graph/operation.h"

namespace joulemap::predict {

// Upper limit of a size and of the elements of a tensor: no GPU holds a larger tensor, and its bytes fit 64 bits.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 46;

struct InputShape {
  std::string name;                 // name of the input; empty: the next input in order
  std::vector<std::int64_t> sizes;  // including the batch
};

struct GraphOptions {
  std::optional<std::int64_t> batch;  // replaces the leading dimension of every input
  std::vector<InputShape> inputs;     // replace the file's shapes; `batch` takes precedence
  Dtype dtype = Dtype::fp32;          // type of floating-point computation
};

struct UnknownOperation {
  std::string layer;
  std::string source;            // name in the graph
  std::string reason;            // a clause: "an unsupported operation of the domain com.acme"
  bool has_lower_bound = false;  // its sizes are known, so that its energy has a lower bound
};

struct Graph {
  std::string name;
  std::string format;  // "onnx", "keras", "torch"
  std::vector<Operation> operations;
  std::vector<UnknownOperation> unknown_operations;
  std::vector<std::string> notes;        // for readers of the prediction: "batch 8 instead of the file's 1"
  std::optional<std::int64_t> batch;     // leading size of the first input, where it is the batch
  std::int64_t weight_tensor_count = 0;  // number of trainable weights, for the optimizer's step
  std::int64_t weight_element_count = 0;
  std::int64_t python_call_count = 0;  // calls of Python functions in a forward pass; 0 if the file has no count
};

}  // namespace joulemap::predict
