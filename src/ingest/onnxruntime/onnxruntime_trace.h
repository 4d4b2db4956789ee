// SPDX-License-Identifier: Apache-2.0
//
// Reads a profile of ONNX Runtime (SessionOptions.enable_profiling) into a Trace. Pure but for reading the file; one thread.
//
// - A node of the graph is an operation: its "<node>_kernel_time". What else is written of it (fences) costs nothing.
// - A run of the session is a step.
// - Kernels of a GPU name their node where the profile says so ("parent_name").
// - Times are microseconds since the profile began; when that was, the file does not tell.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

Result<Trace> read_onnxruntime_trace(const std::string& path);

// An error when the text is no such profile.
Result<Trace> read_onnxruntime_trace_text(std::string_view json);

}  // namespace joulemap::ingest
