// SPDX-License-Identifier: Apache-2.0
//
// Splits the time of a profiled ONNX Runtime session among the nodes of its graph, from its profile (enable_profiling):
// a JSON array of events, whose "<node>_kernel_time" contain the time. Skips the first run if there are more: it
// allocates. Pure.
#pragma once

#include <string_view>

#include "ingest/op_times.h"

namespace joulemap::ingest {

OpTimes read_onnxruntime_op_times(std::string_view json);

}  // namespace joulemap::ingest
