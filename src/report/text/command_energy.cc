// SPDX-License-Identifier: Apache-2.0
#include "report/text/command_energy.h"

#include <algorithm>

namespace joulemap::report {
namespace {

// The errors of rows may be correlated: their half widths add up.
double command_half_width_j(const ReportResult& result, const RunRates& rates) {
  double half_width_j = rates.relative_half_width() * (result.unattributed_j.value_or(0) + result.idle_j.value_or(0));
  for (const ReportRow& row : result.rows) {
    if (row.path.empty() || is_background_row(row) || is_probe_row(row) || !row.low_j || !row.high_j) continue;
    half_width_j += (*row.high_j - *row.low_j) / 2;
  }
  return half_width_j;
}

}  // namespace

double noticeable_background_j(const ReportResult& result) {
  const double joules = background_energy_j(result.rows);
  const double total_energy_j =
      result.attributed_j.value_or(0) + result.idle_j.value_or(0) + result.unattributed_j.value_or(0);
  return joules >= kMinShownEnergyShare * total_energy_j ? joules : 0;
}

RunRates command_rates(const ReportResult& result) {
  RunRates rates = compute_run_rates(result);
  const double background_j = noticeable_background_j(result);
  if (background_j <= 0 || !rates.energy_j) return rates;
  rates.half_width_j = command_half_width_j(result, rates);
  rates.energy_j = std::max(*rates.energy_j - (background_j - background_while_probing_j(result)), 0.0);
  return rates;
}

}  // namespace joulemap::report
