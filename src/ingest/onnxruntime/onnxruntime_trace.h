// SPDX-License-Identifier: Apache-2.0
//
// Reads a profile of ONNX Runtime (SessionOptions.enable_profiling) into a Trace. One thread; pure except for file
// input.
//
// - A node of the graph is an operation: its "<node>_kernel_time". Its other events (fences) have no cost.
// - A run of the session is a step.
// - GPU kernels name their node if the profile contains it ("parent_name").
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
