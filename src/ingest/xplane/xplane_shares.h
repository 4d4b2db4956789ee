// SPDX-License-Identifier: Apache-2.0
//
// How the time of a profiled step divides among phases, layers and operations, from the trace that the framework's own
// profiler made of it. Counted are events that are operations; waiting, scheduling and what lies around operations is not.
// An operation's time is its own, without the operations within it. Pure.
#pragma once

#include <string_view>

#include "ingest/trace_shares.h"
#include "scopes/op_names.h"

namespace joulemap::ingest {

// Of a host's plane: TensorFlow's operations, the stages of tf.data, what XLA compiled for the CPU.
TraceShares shares_of_xplane(std::string_view bytes, const ScopeTable& scopes);

}  // namespace joulemap::ingest
