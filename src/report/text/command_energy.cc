// SPDX-License-Identifier: Apache-2.0
#include "report/text/command_energy.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace joulemap::report {
namespace {

// The errors of rows may be correlated: their half widths add up.
double command_half_width_j(const ReportResult& result, const RunRates& rates) {
  const EnergyOutsideRows outside_rows = energy_outside_rows_without_probing(result);
  double half_width_j =
      rates.relative_half_width() * (outside_rows.unattributed_j.value_or(0) + outside_rows.idle_j.value_or(0));
  for (const ReportRow& row : result.rows) {
    if (row.path.empty() || is_background_row(row) || is_probe_row(row) || !row.low_j || !row.high_j) continue;
    half_width_j += (*row.high_j - *row.low_j) / 2;
  }
  return half_width_j;
}

RunRates subtract_background(RunRates rates, const ReportResult& result) {
  const double background_j = noticeable_background_j(result);
  if (background_j <= 0 || !rates.energy_j) return rates;
  rates.half_width_j = command_half_width_j(result, rates);
  rates.energy_j = std::max(*rates.energy_j - (background_j - background_while_probing_j(result)), 0.0);
  return rates;
}

bool are_background_rows_separate(std::string_view level) {
  constexpr std::array<std::string_view, 4> kLevelsOfTheMachine = {"domain", "kernel", "step", "epoch"};
  return std::ranges::find(kLevelsOfTheMachine, level) == kLevelsOfTheMachine.end();
}

// The rows of the first level that separates other processes; without rows if there is none. Such levels contain the
// same energy of other processes.
ReportResult make_background_report(const RunView& view) {
  ReportResult result;
  const auto level = std::ranges::find_if(
      view.levels, [](const LevelView& candidate) { return are_background_rows_separate(candidate.by); });
  if (level == view.levels.end()) return result;
  result.elapsed_s = view.run.elapsed_s;
  result.probe = view.run.probe;
  result.rows = level->rows;
  result.attributed_j = level->attributed_j;
  result.idle_j = level->idle_j;
  result.unattributed_j = level->unattributed_j;
  return result;
}

}  // namespace

double noticeable_background_j(const ReportResult& result) {
  const double joules = background_energy_j(result.rows);
  const double total_energy_j =
      result.attributed_j.value_or(0) + result.idle_j.value_or(0) + result.unattributed_j.value_or(0);
  return joules >= kMinShownEnergyShare * total_energy_j ? joules : 0;
}

double noticeable_background_j(const RunView& view) { return noticeable_background_j(make_background_report(view)); }

RunRates command_rates(const ReportResult& result) { return subtract_background(compute_run_rates(result), result); }

RunRates command_rates(const RunView& view) { return subtract_background(view.rates, make_background_report(view)); }

bool are_other_processes_included(const ReportResult& result) {
  return compute_run_rates(result).is_estimated() && !are_background_rows_separate(result.by);
}

bool are_other_processes_included(const RunView& view) {
  return view.rates.is_estimated() && make_background_report(view).rows.empty();
}

}  // namespace joulemap::report
