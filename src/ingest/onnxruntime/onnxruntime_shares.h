// SPDX-License-Identifier: Apache-2.0
//
// How the time of a profiled run of ONNX Runtime divides among the nodes of its graph, from the profile that it writes
// (enable_profiling): a JSON array of events, whose "<node>_kernel_time" carry the cost. The first run is left out where
// there are more: it allocates. Pure.
#pragma once

#include <string_view>

#include "ingest/trace_shares.h"

namespace joulemap::ingest {

TraceShares shares_of_onnxruntime(std::string_view json);

}  // namespace joulemap::ingest
