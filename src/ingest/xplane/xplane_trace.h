// SPDX-License-Identifier: Apache-2.0
//
// Reads a profile of TensorFlow or JAX (*.xplane.pb) into a Trace, on all cores. The file is held in memory while it is
// read. Which thread read what makes no difference.
//
// - Of the host: operations (xplane_operations.h), calls that launched something on a GPU, functions of Python where
//   they were traced, steps. Other regions that the framework or the program named cannot be told apart from what the
//   runtime says of itself, and are left out.
// - An operation that ends on another thread than it began (XLA's pool) is continued on the thread that ended it.
// - Of a GPU: the streams. Lines that the profiler made of these would count their time again. What ran names its
//   operation.
// - Times are Unix time where the file tells when the profile began, else since then.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

// The file itself, or the folder that the profiler was given: its newest run, <folder>/plugins/profile/<run>/.
Result<Trace> read_xplane_trace(const std::string& path);

struct XPlaneReading {
  std::size_t threads = 0;                             // 0: as many as the machine has cores, up to four
  std::size_t segment_bytes = std::size_t{256} << 10;  // that a thread reads at a time
};

// An error when the bytes are no such profile.
Result<Trace> read_xplane_trace_bytes(std::string_view bytes, const XPlaneReading& reading = {});

}  // namespace joulemap::ingest
