// SPDX-License-Identifier: Apache-2.0
//
// export --to folded: one stack per line, "gpu0;train;forward;layer1;layer1.0 123456". The number is in microjoules,
// because viewers expect integers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/export/energy_stacks.h"
#include "report/export/exports.h"

namespace joulemap::report {

Result<std::string> folded_stacks_text(const RunView& view, const ExportOptions& query) {
  const Result<EnergyStacks> level_stacks = energy_stacks(view, query.by);
  if (!level_stacks) return level_stacks.error();
  std::string out;
  for (const EnergyStack& stack : level_stacks->stacks) {
    const std::int64_t microjoules = std::llround(stack.energy_j.value_or(0) * 1e6);
    if (microjoules <= 0) continue;
    std::string line;
    for (std::string frame : stack.frames) {
      std::ranges::replace(frame, ';', ',');
      line += (line.empty() ? "" : ";") + frame;
    }
    out += fmt::format("{} {}\n", line, microjoules);
  }
  if (out.empty()) return missing_energy_error(level_stacks->by);
  return out;
}

}  // namespace joulemap::report
