// SPDX-License-Identifier: Apache-2.0
#include "ingest/trace_formats.h"

#include <vector>

namespace joulemap::ingest {

std::span<const TraceFormat> trace_formats() {
  static const std::vector<TraceFormat> kFormats = {};
  return kFormats;
}

const TraceFormat* trace_format_named(std::string_view name) {
  for (const TraceFormat& format : trace_formats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

}  // namespace joulemap::ingest
