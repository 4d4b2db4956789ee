// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/compared_entries.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "model/activity.h"
#include "statistics/adjustment.h"
#include "statistics/normal.h"

namespace joulemap::attribution {
namespace {

// An entry's interval is based on hundreds of power samples, so it has more degrees of freedom than the prior of the
// total.
constexpr double kEntryDegreesOfFreedom = 20;

using EntryKey = std::pair<std::string, std::vector<std::string>>;  // device, path

// Values of an entry on one side, by recording; 0 where a recording has no such row.
struct ComparedSideValues {
  std::vector<double> energy_j;
  std::vector<double> within_recording_sd_j;  // standard deviation within the recording
  double waiting_j = 0;                       // mean of all recordings, as are the following
  double count = 0;
  double time_s = 0;
  bool has_waiting = false;
  bool has_count = true;
  bool is_present = false;
  bool is_known = true;  // all rows have intervals

  explicit ComparedSideValues(std::size_t recordings) : energy_j(recordings), within_recording_sd_j(recordings) {}
};

struct ComparedEntry {
  DifferenceEntry entry;
  ComparedSideValues a;
  ComparedSideValues b;
  statistics::RunContrast contrast = {};
};

using ComparedEntriesByKey = std::map<EntryKey, ComparedEntry>;

void collect_side_values(ComparedEntriesByKey& entries_by_key, std::span<const RecordingEntries> side,
                         ComparedSideValues ComparedEntry::*values, std::pair<std::size_t, std::size_t> recordings) {
  for (std::size_t i = 0; i < side.size(); ++i) {
    for (const ReportRow& row : side[i].rows->rows) {
      if (!row.energy_j || row.path == std::vector<std::string>{std::string(kProbeModeScopeName)}) continue;
      ComparedEntry& compared_entry =
          entries_by_key
              .try_emplace(
                  {row.device, row.path},
                  ComparedEntry{{}, ComparedSideValues(recordings.first), ComparedSideValues(recordings.second)})
              .first->second;
      compared_entry.entry.path = row.path;
      compared_entry.entry.name = row.name;
      compared_entry.entry.display_name = row.display_name;
      compared_entry.entry.device = row.device;
      ComparedSideValues& side_values = compared_entry.*values;
      side_values.is_present = true;
      side_values.energy_j[i] = *row.energy_j / side[i].unit_count;
      side_values.has_waiting = side_values.has_waiting || row.waiting_j.has_value();
      const double share = 1 / side[i].unit_count / static_cast<double>(side.size());
      side_values.waiting_j += row.waiting_j.value_or(0) * share;
      side_values.has_count = side_values.has_count && row.count.has_value();
      side_values.count += static_cast<double>(row.count.value_or(0)) * share;
      side_values.time_s += row.time_s * share;
      if (!row.low_j || !row.high_j) side_values.is_known = false;
      if (!side_values.is_known) continue;
      side_values.within_recording_sd_j[i] =
          0.5 * (*row.high_j - *row.low_j) / statistics::kNormalHalfWidth90 / side[i].unit_count;
    }
  }
}

statistics::RunGroup to_run_group(const ComparedSideValues& side) {
  if (!side.is_present) return {};
  return {side.energy_j, side.within_recording_sd_j};
}

double mean_energy(const ComparedSideValues& side) {
  double sum = 0;
  for (const double energy_j : side.energy_j) sum += energy_j / static_cast<double>(side.energy_j.size());
  return sum;
}

// Factor that widens the intervals of entries: the variation between runs affects all entries of a run together, and is
// known with the few degrees of freedom of the total.
double run_variation_widening_factor(const statistics::RunContrast& run, double level) {
  constexpr double kNormalLimitDegreesOfFreedom = 1e6;
  return statistics::two_sided_t_quantile(level, run.degrees_of_freedom) /
         statistics::two_sided_t_quantile(level, kNormalLimitDegreesOfFreedom);
}

void set_compared_energy(std::optional<ComparedEnergy>& energy, const ComparedSideValues& side, double half_width_j,
                         bool is_known) {
  if (!side.is_present) return;
  energy = ComparedEnergy{mean_energy(side), {}, {}};
  if (side.has_waiting) energy->waiting_j = side.waiting_j;
  if (side.has_count) energy->count = side.count;
  energy->time_s = side.time_s;
  if (!is_known) return;
  energy->low_j = energy->energy_j - half_width_j;
  energy->high_j = energy->energy_j + half_width_j;
}

void fill_in_entry_difference(ComparedEntry& compared_entry, double alpha, double half_widths) {
  DifferenceEntry& entry = compared_entry.entry;
  const bool is_known = (!compared_entry.a.is_present || compared_entry.a.is_known) &&
                        (!compared_entry.b.is_present || compared_entry.b.is_known);
  set_compared_energy(entry.a, compared_entry.a, half_widths * compared_entry.contrast.standard_error_a,
                      compared_entry.a.is_known);
  set_compared_energy(entry.b, compared_entry.b, half_widths * compared_entry.contrast.standard_error_b,
                      compared_entry.b.is_known);
  entry.difference_j = (entry.b ? entry.b->energy_j : 0) - (entry.a ? entry.a->energy_j : 0);
  if (entry.a && entry.a->energy_j > 0) entry.relative_change = *entry.difference_j / entry.a->energy_j;
  if (is_known) {
    entry.low_j = *entry.difference_j - half_widths * compared_entry.contrast.standard_error();
    entry.high_j = *entry.difference_j + half_widths * compared_entry.contrast.standard_error();
  }
  if (!entry.a || !entry.b) {
    entry.verdict = entry.b ? ChangeVerdict::appeared : ChangeVerdict::gone;
  } else if (!entry.p_adjusted) {
    entry.verdict = ChangeVerdict::unknown;
  } else if (*entry.p_adjusted > alpha) {
    entry.verdict = ChangeVerdict::within_noise;
  } else {
    entry.verdict = *entry.difference_j > 0 ? ChangeVerdict::grew : ChangeVerdict::shrank;
  }
}

double difference_p_value(const ComparedEntry& compared_entry, double factor) {
  const bool is_compared = compared_entry.a.is_present && compared_entry.b.is_present && compared_entry.a.is_known &&
                           compared_entry.b.is_known;
  if (!is_compared) return std::numeric_limits<double>::quiet_NaN();
  const double error_j = factor * compared_entry.contrast.standard_error();
  if (error_j <= 0) return compared_entry.contrast.difference() == 0 ? 1 : std::numeric_limits<double>::quiet_NaN();
  return statistics::p_value_of_t_ratio(compared_entry.contrast.difference() / error_j,
                                        compared_entry.contrast.degrees_of_freedom);
}

std::vector<IdleDifference> compare_idle_energy(std::span<const RecordingEntries> a,
                                                std::span<const RecordingEntries> b) {
  std::map<std::pair<std::string, IdleCause>, IdleDifference> difference_by_device_cause;
  const auto add = [&](std::span<const RecordingEntries> side, double IdleDifference::*energy_j) {
    for (const RecordingEntries& recording : side) {
      for (const IdleEntry& entry : recording.rows->idle) {
        IdleDifference& idle_difference = difference_by_device_cause[{entry.device, entry.cause}];
        idle_difference.cause = entry.cause;
        idle_difference.device = entry.device;
        idle_difference.*energy_j +=
            entry.energy_j.value_or(0) / recording.unit_count / static_cast<double>(side.size());
      }
    }
  };
  add(a, &IdleDifference::energy_a_j);
  add(b, &IdleDifference::energy_b_j);
  std::vector<IdleDifference> idle_differences;
  for (const auto& [key, idle_difference] : difference_by_device_cause) idle_differences.push_back(idle_difference);
  std::ranges::stable_sort(idle_differences, std::greater(), [](const IdleDifference& idle_difference) {
    return std::abs(idle_difference.energy_b_j - idle_difference.energy_a_j);
  });
  return idle_differences;
}

}  // namespace

void compare_entries(std::span<const RecordingEntries> a, std::span<const RecordingEntries> b,
                     const statistics::RunContrast& run, RunDifference& difference) {
  difference.idle = compare_idle_energy(a, b);
  ComparedEntriesByKey entries_by_key;
  collect_side_values(entries_by_key, a, &ComparedEntry::a, {a.size(), b.size()});
  collect_side_values(entries_by_key, b, &ComparedEntry::b, {a.size(), b.size()});
  const double alpha = 1 - difference.interval;
  const double factor = run_variation_widening_factor(run, difference.interval);
  std::vector<double> probabilities;
  for (auto& [key, compared_entry] : entries_by_key) {
    compared_entry.contrast = statistics::contrast_runs(to_run_group(compared_entry.a), to_run_group(compared_entry.b),
                                                        {run.relative_sd, kEntryDegreesOfFreedom});
    probabilities.push_back(difference_p_value(compared_entry, factor));
  }
  const std::vector<double> adjusted_p_values =
      statistics::adjusted_p_values(probabilities, statistics::Adjustment::benjamini_hochberg);
  const auto tests =
      std::count_if(adjusted_p_values.begin(), adjusted_p_values.end(), [](double p) { return !std::isnan(p); });
  const auto significant_count =
      std::count_if(adjusted_p_values.begin(), adjusted_p_values.end(), [&](double p) { return p <= alpha; });
  difference.entry_confidence = 1 - alpha * static_cast<double>(std::max<std::ptrdiff_t>(significant_count, 1)) /
                                        static_cast<double>(std::max<std::ptrdiff_t>(tests, 1));
  std::size_t index = 0;
  for (auto& [key, compared_entry] : entries_by_key) {
    const double p = adjusted_p_values[index++];
    if (!std::isnan(p)) compared_entry.entry.p_adjusted = p;
    fill_in_entry_difference(compared_entry, alpha,
                             factor * statistics::two_sided_t_quantile(difference.entry_confidence,
                                                                       compared_entry.contrast.degrees_of_freedom));
    difference.entries.push_back(std::move(compared_entry.entry));
  }
  std::stable_sort(difference.entries.begin(), difference.entries.end(),
                   [](const DifferenceEntry& x, const DifferenceEntry& y) {
                     return std::abs(x.difference_j.value_or(0)) > std::abs(y.difference_j.value_or(0));
                   });
}

}  // namespace joulemap::attribution
