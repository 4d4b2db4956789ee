// SPDX-License-Identifier: Apache-2.0
//
// How the time of a profiled step divides among phases, layers and operations, from the trace that the framework's own
// profiler made of it. Counted are events that are operations; waiting, scheduling and what lies around operations is not.
// An operation's time is its own, without the operations within it. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ingest/op_names.h"
#include "model/diagnostics.h"

namespace joulemap::ingest {

struct OpShare {
  OpPlace place;
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;
};

struct TraceShares {
  std::vector<OpShare> shares;
  Diagnostics diagnostics;

  std::int64_t time_ns() const;
  // Of operations whose phase and layer are known.
  std::int64_t placed_ns() const;
};

// Of a host's plane: TensorFlow's operations, the stages of tf.data, what XLA compiled for the CPU.
TraceShares shares_of_xplane(std::string_view bytes, const ScopeTable& scopes);

}  // namespace joulemap::ingest
