// SPDX-License-Identifier: Apache-2.0
#include "model/background_row.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

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

namespace {

void scale_row(ReportRow& row, double factor) {
  row.time_s *= factor;
  for (std::optional<double>* value : {&row.energy_j, &row.low_j, &row.high_j}) {
    if (*value) **value *= factor;
  }
}

struct EnergyAndTime {
  double energy_j = 0;
  double time_s = 0;
};

// Returns what it removed, by device.
std::map<std::string, EnergyAndTime> exclude_probing_rows(std::vector<ReportRow>& rows, double probing_time_fraction) {
  std::map<std::string, EnergyAndTime> removed_by_device;
  for (ReportRow& row : rows) {
    const double removed_fraction = is_probe_row(row) ? 1 : is_background_row(row) ? probing_time_fraction : 0;
    if (removed_fraction <= 0) continue;
    removed_by_device[row.device].energy_j += removed_fraction * row.energy_j.value_or(0);
    removed_by_device[row.device].time_s += removed_fraction * row.time_s;
    scale_row(row, 1 - removed_fraction);
  }
  std::erase_if(rows, is_probe_row);
  return removed_by_device;
}

}  // namespace

ReportResult exclude_probing(ReportResult result) {
  if (!result.probe) return result;
  const double fraction = probing_time_fraction(result);
  const std::map<std::string, EnergyAndTime> removed_by_device = exclude_probing_rows(result.rows, fraction);
  exclude_probing_rows(result.groups, fraction);
  for (ReportRow& group : result.groups) {
    const auto removed_amount = removed_by_device.find(group.device);
    if (!group.path.empty() || removed_amount == removed_by_device.end() || !group.energy_j) continue;
    *group.energy_j -= removed_amount->second.energy_j;
    group.time_s -= removed_amount->second.time_s;
    group.power_w = group.time_s > 0 ? std::optional(*group.energy_j / group.time_s) : std::nullopt;
    group.low_j = group.high_j = std::nullopt;
  }
  // A device without any other work has no sum left.
  std::erase_if(result.groups, [&](const ReportRow& group) {
    return group.path.empty() && std::ranges::find(result.rows, group.device, &ReportRow::device) == result.rows.end();
  });
  return result;
}

double background_while_probing_j(const ReportResult& result) {
  return probing_time_fraction(result) * background_energy_j(result.rows);
}

EnergyOutsideRows energy_outside_rows_without_probing(const ReportResult& result) {
  EnergyOutsideRows remaining{result.idle_j, result.unattributed_j};
  if (!result.probe || !result.probe->energy_j) return remaining;
  double probing_outside_rows_j =
      *result.probe->energy_j - probe_rows_energy_j(result.rows) - background_while_probing_j(result);
  // Devices are mostly idle between the replayed modules. On a CPU without idle energy, the program's code between them
  // is unattributed.
  for (std::optional<double>* const joules : {&remaining.idle_j, &remaining.unattributed_j}) {
    if (!*joules) continue;
    const double removed_j = std::clamp(probing_outside_rows_j, 0.0, std::max(**joules, 0.0));
    **joules -= removed_j;
    probing_outside_rows_j -= removed_j;
  }
  return remaining;
}

}  // namespace joulemap
