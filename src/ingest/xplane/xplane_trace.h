// SPDX-License-Identifier: Apache-2.0
//
// Reads a profile of TensorFlow or JAX (*.xplane.pb) into a Trace, with several threads. The file is in memory during
// reading. The result does not depend on the number of threads.
//
// - Host: operations (xplane_operations.h), calls that launched GPU work, traced Python functions, steps. Other named
//   regions of the framework or the program cannot be distinguished from internal events of the runtime and are
//   omitted.
// - An operation that ends on another thread than it began (XLA's pool) continues on the thread that ended it.
// - GPU: the streams. Lines that the profiler derives from streams are skipped: they would count the time twice. GPU
//   events identify their operation.
// - Times are Unix times if the file contains these or the start of the profile, else relative to that start.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

// `path`: the file, or the log folder of the profiler. Of a folder, the newest run is read,
// <folder>/plugins/profile/<run>/*.xplane.pb; of several hosts, only the first file, with a diagnostic.
Result<Trace> read_xplane_trace(const std::string& path);

struct XPlaneReadOptions {
  std::size_t threads = 0;                             // 0: number of cores, at most four
  std::size_t segment_bytes = std::size_t{256} << 10;  // size of the segments that threads read independently
};

// Fails if the bytes are not such a profile.
Result<Trace> read_xplane_trace_bytes(std::string_view bytes, const XPlaneReadOptions& options = {});

}  // namespace joulemap::ingest
