// SPDX-License-Identifier: Apache-2.0
//
// Reads what `nsys export --type sqlite` wrote into a Trace. Its tables are created lazily and change with the version, so
// each is asked for, column by column, and rows are read as they lie. One thread.
//
// - Kernels, copies, fills; graphs where their kernels are not told one by one.
// - Calls of CUDA's runtime and driver, which tie a kernel to what launched it. Ids of different processes are kept apart.
// - NVTX ranges are annotations. Those that PyTorch's emit_nvtx pushed are operations ("aten::conv2d, seq = 12"), and so are
//   those that XLA pushed for its instructions, which tell their place. A range that was never ended lasts until the end.
// - Times are since the session began, and Unix time where the file tells when that was.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

Result<Trace> read_nsys_trace(const std::string& path);

// An error when the bytes are no such database.
Result<Trace> read_nsys_trace_bytes(std::string_view bytes);

}  // namespace joulemap::ingest
