// SPDX-License-Identifier: Apache-2.0
//
// The table of trace formats that `joulemap import` reads. To add one: write a reader in its own folder, add a line to
// trace_formats.cc, and let detect_format.cc recognize it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/result.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

struct TraceFormat {
  std::string_view name;
  std::string_view file_description;  // the profiler and its file names, for help texts
  Result<Trace> (*read)(const std::string& path, const ProgressCallback& on_progress);
  // For formats whose files are steps of one process: reads all of them. Null: each file is a process.
  Result<Trace> (*read_steps)(std::span<const std::string> paths) = nullptr;
};

std::span<const TraceFormat> trace_formats();
const TraceFormat* find_trace_format(std::string_view name);

}  // namespace joulemap::ingest
