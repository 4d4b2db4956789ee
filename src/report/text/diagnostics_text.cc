// SPDX-License-Identifier: Apache-2.0
#include "report/text/diagnostics_text.h"

#include <fmt/format.h>

#include "base/printable_text.h"
#include "base/text.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {

std::string remedy_text(std::string_view indent, std::string_view remedy) {
  std::string out;
  if (remedy.empty()) return out;
  for (const std::string_view step : split(remedy, '\n')) {
    const std::string line_prefix = fmt::format("{}-> ", indent);
    out += step.starts_with("sudo ") ? fmt::format("{}{}\n", line_prefix, printable(step))
                                     : wrap_text(line_prefix, printable(step));
  }
  return out;
}

std::string diagnostics_text(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    const std::string times = diagnostic.count > 1 ? fmt::format(" ({} times)", diagnostic.count) : "";
    out += wrap_text(" note: ", printable(diagnostic.message) + times);
    out += remedy_text("    ", diagnostic.remedy);
  }
  return out;
}

}  // namespace joulemap::report
