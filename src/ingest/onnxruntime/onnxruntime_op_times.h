// SPDX-License-Identifier: Apache-2.0
//
// Splits the time of a profiled ONNX Runtime session among the nodes of its graph, from its profile (enable_profiling):
// a JSON array of events, in which "<node>_kernel_time" has the time of a node. Skips the first of several runs,
// because it includes allocations. Pure.
#pragma once

#include <string_view>

#include "ingest/op_times.h"

namespace joulemap::ingest {

OpTimes read_onnxruntime_op_times(std::string_view json);

}  // namespace joulemap::ingest
