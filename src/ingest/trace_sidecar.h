// SPDX-License-Identifier: Apache-2.0
//
// TraceSidecar: the metadata file beside a framework's trace in the folder of a recording. It names the scope of the
// recording that the trace splits, and explains names of its graph. Tab-separated lines, written by the Python capture:
//
//   coarse   mode  train                      kind and name of a level of the recording's scope, outermost level first
//   scope    sequential_1/dense_1    dense    name in the graph, phase (may be empty), layer
//   tensors  net/dense/MatMul  [64,8] [8,2]   name in the graph, input tensors
//   fused    net/Relu  net/dense/MatMul  ...  names of the last and the first operation of a chain, input tensors
//   update   sgd/AssignSub  net/dense/Read    names of operations: one updates a variable that the other one reads
//
// Unknown kinds of lines are ignored: a newer version may write more. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/graph_names.h"
#include "model/activity.h"

namespace joulemap::ingest {

struct TraceSidecar {
  std::vector<std::pair<ScopeKind, std::string>> coarse_scope;
  GraphNames graph_names;
};

TraceSidecar parse_trace_sidecar(std::string_view text);

}  // namespace joulemap::ingest
