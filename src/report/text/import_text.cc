// SPDX-License-Identifier: Apache-2.0
#include "report/text/import_text.h"

#include <fmt/format.h>

#include "report/text/diagnostics_text.h"
#include "report/text/energy_rows.h"

namespace joulemap::report {

std::string import_text(const ImportResult& result) {
  std::string out =
      fmt::format("joulemap: {} events ({} dropped), {} kernels", result.events, result.events_dropped, result.kernels);
  if (result.kernel_scope_share)
    out += fmt::format(" ({:.1f} % of their time has a scope)", 100 * *result.kernel_scope_share);
  out += fmt::format(", {} steps, {} power samples, {} s\n", result.steps, result.samples,
                     format_number(result.elapsed_s));
  out += fmt::format("joulemap: to see the energy, run: joulemap report {}\n", result.file);
  return out + diagnostics_text(result.diagnostics);
}

}  // namespace joulemap::report
