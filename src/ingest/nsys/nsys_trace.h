// SPDX-License-Identifier: Apache-2.0
//
// Reads the output of `nsys export --type sqlite` into a Trace. nsys creates tables lazily and changes them between
// versions, so the reader checks each table and column, and takes rows in their stored order. Single-threaded.
//
// - Kernels, copies, fills; CUDA graphs if their kernels are not listed individually.
// - Calls of CUDA's runtime and driver, which connect a kernel to its launch. Ids of different processes stay distinct.
// - NVTX ranges are annotations. Ranges pushed by PyTorch's emit_nvtx are operations ("aten::conv2d, seq = 12"). So are
//   those that XLA pushes for its instructions, which contain their scope. A range that is never closed lasts until the
//   end.
// - Times are Unix times if the file contains these or the start of the session, else relative to that start.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

Result<Trace> read_nsys_trace(const std::string& path);

// The same for the content of a file. Both fail if it is not an SQLite export of nsys.
Result<Trace> read_nsys_trace_bytes(std::string_view bytes);

}  // namespace joulemap::ingest
