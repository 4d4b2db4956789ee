// SPDX-License-Identifier: Apache-2.0
#include "model/background_row.h"

#include <algorithm>

#include "model/activity.h"

namespace joulemap {

bool is_background_row(const ReportRow& row) { return row.path.size() == 1 && row.path.front() == kBackgroundRowName; }
bool is_probe_row(const ReportRow& row) { return row.path.size() == 1 && row.path.front() == kProbeModeScopeName; }

double background_energy_j(std::span<const ReportRow> rows) {
  double joules = 0;
  for (const ReportRow& row : rows) {
    if (is_background_row(row)) joules += row.energy_j.value_or(0);
  }
  return joules;
}

double probe_rows_energy_j(std::span<const ReportRow> rows) {
  double joules = 0;
  for (const ReportRow& row : rows) {
    if (is_probe_row(row)) joules += row.energy_j.value_or(0);
  }
  return joules;
}

double probing_time_fraction(const ReportResult& result) {
  if (!result.probe || result.elapsed_s <= 0) return 0;
  return std::clamp(result.probe->time_s / result.elapsed_s, 0.0, 1.0);
}

double background_while_probing_j(const ReportResult& result) {
  return probing_time_fraction(result) * background_energy_j(result.rows);
}

}  // namespace joulemap
