// SPDX-License-Identifier: Apache-2.0
//
// Splits the time of a profiled ONNX Runtime session among the nodes of its graph, from its profile (enable_profiling):
// a JSON array of events, whose "<node>_kernel_time" contain the time. Skips the first run if there are more: it
// allocates. Pure.
#pragma once

#include <string_view>

#include "ingest/trace_shares.h"

namespace joulemap::ingest {

TraceShares shares_of_onnxruntime(std::string_view json);

}  // namespace joulemap::ingest
