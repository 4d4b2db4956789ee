// SPDX-License-Identifier: Apache-2.0
//
// Reads a trace of PyTorch's profiler (Kineto's Chrome JSON, plain or gzip) into a Trace: old traces with Unix times
// and new ones with a base time; runs on CUDA GPUs, on AMD GPUs or without a GPU. The file is read in blocks, which
// several threads parse in parallel. Memory is 40 bytes per event, so files of gigabytes fit.
//
// Broken traces are common: unescaped quotes, control characters, a missing end. The reader recovers event by event and
// counts the dropped ones; a diagnostic gives the offset of the first. The calling thread also parses, and returns when
// all threads have ended.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/result.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

struct KinetoReadOptions {
  std::size_t block_bytes = 1 << 18;  // small enough to stay in a core's cache from reading to parsing
  std::size_t threads = 0;            // 0: number of cores, at most four
  ProgressCallback on_progress = {};  // share of the file that is read; one call at a time, from any of these threads
};

// Fails if the file cannot be read or is not such a trace.
Result<Trace> read_kineto(const std::string& path, const KinetoReadOptions& options = {});

// As read_kineto(), for text in memory; an error gives an empty trace with a diagnostic.
Trace read_kineto_text(std::string_view json, const KinetoReadOptions& options = {});

}  // namespace joulemap::ingest
