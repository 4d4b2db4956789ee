// SPDX-License-Identifier: Apache-2.0
#include "ingest/trace_formats.h"

#include <vector>

#include "ingest/kineto/kineto_reader.h"

namespace joulemap::ingest {

std::span<const TraceFormat> trace_formats() {
  static const std::vector<TraceFormat> kFormats = {
      {"kineto", "PyTorch's profiler: trace.json, trace.json.gz", [](const std::string& path) { return read_kineto(path); }},
  };
  return kFormats;
}

const TraceFormat* trace_format_named(std::string_view name) {
  for (const TraceFormat& format : trace_formats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

}  // namespace joulemap::ingest
