// SPDX-License-Identifier: Apache-2.0
//
// GraphNames: what the names in the graphs of a compiled TensorFlow function mean. The capture reads it from the graphs
// in the recorded program (python/joulemap/_graph_names.py). Plain data. Keys are names in the graph, without the
// prefixes of function calls.
#pragma once

#include <map>
#include <string>

#include "scopes/op_names.h"

namespace joulemap::ingest {

// An operation that TensorFlow made of several and named after the last of them.
struct FusedOperation {
  std::string first_operation;  // name of the first one, which takes the time: the MatMul or convolution
  std::string tensors;          // input tensors, as in tensor_text.h
};

struct GraphNames {
  scopes::NameScopes scope_by_operation;
  std::map<std::string, std::string, std::less<>> tensors_by_operation;  // input tensors of an operation
  std::map<std::string, FusedOperation, std::less<>> fused_operations;
  // Operations that update a variable: the operation that reads it, whose layer is theirs.
  std::map<std::string, std::string, std::less<>> variable_reader_by_update;
};

}  // namespace joulemap::ingest
