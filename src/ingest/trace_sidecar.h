// SPDX-License-Identifier: Apache-2.0
//
// TraceSidecar: the metadata file beside a framework's trace in the folder of a recording. It names the scope of the
// recording that the trace splits, and maps names of its graph to layers. Tab-separated lines, written by the Python
// capture:
//
//   coarse  mode  train                      kind and name of a level of the recording's scope, outermost level first
//   scope   sequential_1/dense_1    dense    name in the graph, phase (may be empty), layer
//
// Unknown kinds of lines are ignored: a newer version may write more. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/activity.h"
#include "scopes/op_names.h"

namespace joulemap::ingest {

struct TraceSidecar {
  std::vector<std::pair<ScopeKind, std::string>> coarse_scope;
  scopes::NameScopes name_scopes;
};

TraceSidecar parse_trace_sidecar(std::string_view text);

}  // namespace joulemap::ingest
