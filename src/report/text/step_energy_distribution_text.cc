// SPDX-License-Identifier: Apache-2.0
#include "report/text/step_energy_distribution_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/activity.h"
#include "report/text/energy_rows.h"
#include "report/text/energy_tree.h"
#include "report/text/sparkline.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kMinStepRows = 3;
constexpr std::size_t kMinRowsForQuantiles = 20;

double sorted_quantile(const std::vector<double>& sorted_values, double share) {
  const double position = share * static_cast<double>(sorted_values.size() - 1);
  const auto lower_index = static_cast<std::size_t>(position);
  const std::size_t upper_index = std::min(lower_index + 1, sorted_values.size() - 1);
  return sorted_values[lower_index] +
         (position - static_cast<double>(lower_index)) * (sorted_values[upper_index] - sorted_values[lower_index]);
}

}  // namespace

std::string step_energy_distribution_text(const ReportResult& result, const TextStyle& style) {
  if (!has_step_or_epoch_rows(result)) return {};
  std::vector<std::optional<double>> energies_in_step_order;
  std::vector<double> sorted_energies_j;
  for (const ReportRow& row : result.rows) {
    if (row.name == kProbeModeScopeName) continue;
    energies_in_step_order.push_back(row.energy_j);
    if (row.energy_j) sorted_energies_j.push_back(*row.energy_j);
  }
  if (sorted_energies_j.size() < kMinStepRows) return {};
  std::sort(sorted_energies_j.begin(), sorted_energies_j.end());
  const double high = sorted_quantile(sorted_energies_j, 0.95);
  const bool has_quantiles = sorted_energies_j.size() >= kMinRowsForQuantiles;
  const std::string range =
      fmt::format("{} between {} and {} J", has_quantiles ? "90 %" : "all",
                  format_number(has_quantiles ? sorted_quantile(sorted_energies_j, 0.05) : sorted_energies_j.front()),
                  format_number(has_quantiles ? high : sorted_energies_j.back()));
  const std::string summary = fmt::format("{} {}s: median {} J, {}", sorted_energies_j.size(), result.by,
                                          format_number(sorted_quantile(sorted_energies_j, 0.5)), range);
  const std::string out = "\n" + wrap_text(" ", summary, style.columns);
  const std::string line =
      sparkline(energies_in_step_order, std::min<std::size_t>(style.columns - 2, 120), high, style.is_unicode());
  return out + "  " + style.cyan(line) + "\n";
}

}  // namespace joulemap::report
