// SPDX-License-Identifier: Apache-2.0
//
// Reads a profile of ONNX Runtime (SessionOptions.enable_profiling) into a Trace. One thread; pure except for file
// input.
//
// - A node of the graph is an operation: its event "<node>_kernel_time". Its other events (fences) are skipped.
// - A run of the session is a step.
// - A GPU kernel belongs to the node that the profile gives as its "parent_name", if any.
// - Times are microseconds since the start of the profile, whose absolute time is not in the file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

Result<Trace> read_onnxruntime_trace(const std::string& path);

// Fails if the text is not such a profile.
Result<Trace> read_onnxruntime_trace_text(std::string_view json);

}  // namespace joulemap::ingest
