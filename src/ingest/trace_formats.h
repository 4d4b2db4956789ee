// SPDX-License-Identifier: Apache-2.0
//
// The table of formats that `joulemap import` reads. To add one: write a reader in its own folder and add a line here.
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
  std::string_view file_description;  // common name of these files
  Result<Trace> (*read)(const std::string& path, const ProgressCallback& on_progress);
};

std::span<const TraceFormat> trace_formats();
const TraceFormat* find_trace_format(std::string_view name);

}  // namespace joulemap::ingest
