// SPDX-License-Identifier: Apache-2.0
#include "model/background_row.h"

namespace joulemap {

bool is_background_row(const ReportRow& row) { return !row.path.empty() && row.path.front() == kBackgroundRowName; }

double background_energy_j(std::span<const ReportRow> rows) {
  double joules = 0;
  for (const ReportRow& row : rows) {
    if (is_background_row(row)) joules += row.energy_j.value_or(0);
  }
  return joules;
}

}  // namespace joulemap
