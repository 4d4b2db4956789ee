// SPDX-License-Identifier: Apache-2.0
//
// TraceNote: what lies beside a framework's trace in the folder of a recording: which place of the recording the trace
// divides, and what the names of its graph mean. Lines of words with tabs between them, written by the capture in Python:
//
//   coarse  mode  train                      the place, from the outside in: kind and name, a line for each level
//   scope   sequential_1/dense_1    dense    scope or operation, phase (or nothing), layer
//
// Lines of another kind are left out: a newer version may write more. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/activity.h"
#include "scopes/op_names.h"

namespace joulemap::ingest {

struct TraceNote {
  std::vector<std::pair<PlaceKind, std::string>> coarse;
  ScopeTable scopes;
};

TraceNote read_trace_note(std::string_view text);

}  // namespace joulemap::ingest
