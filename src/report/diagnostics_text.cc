// SPDX-License-Identifier: Apache-2.0
#include "report/diagnostics_text.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/wrapped_text.h"

namespace joulemap::report {

std::string diagnostics_text(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    const std::string times = diagnostic.count > 1 ? fmt::format(" ({} times)", diagnostic.count) : "";
    out += wrapped(" note: ", diagnostic.message + times);
    if (diagnostic.remedy.empty()) continue;
    for (const std::string_view step : split(diagnostic.remedy, '\n')) out += wrapped("    -> ", step);
  }
  return out;
}

void write_diagnostics(formats::JsonWriter& json, const Diagnostics& diagnostics) {
  json.key("diagnostics").begin_array();
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    json.begin_object()
        .member("code", diagnostic.code)
        .member("count", diagnostic.count)
        .member("message", diagnostic.message)
        .text_or_null("remedy", diagnostic.remedy)
        .end_object();
  }
  json.end_array();
}

}  // namespace joulemap::report
