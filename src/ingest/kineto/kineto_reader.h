// SPDX-License-Identifier: Apache-2.0
//
// Reads a trace of PyTorch's profiler (Kineto's Chrome JSON, plain or gzip) into a Trace: old traces with times since 1970
// and new ones that name the base of theirs, of CUDA, of AMD, of a CPU alone. The file streams by in blocks that all cores
// read at once; what is kept is 40 bytes an event, so that files of gigabytes fit.
//
// Broken traces are normal: stray quotes, control characters, an end that is missing. What can be read is, event by event;
// what was dropped is counted, and diagnostics say where the first was. The caller's thread waits for the others.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

struct KinetoReading {
  std::size_t block_bytes = 1 << 18;  // small enough to stay in a core's cache between reading and parsing
  std::size_t threads = 0;            // 0: as many as there are cores, four at most
};

// An error when the file cannot be read or is no such trace at all.
Result<Trace> read_kineto(const std::string& path, const KinetoReading& reading = {});

// The same for a text in memory; what would be an error is a diagnostic and an empty trace.
Trace read_kineto_text(std::string_view json, const KinetoReading& reading = {});

}  // namespace joulemap::ingest
