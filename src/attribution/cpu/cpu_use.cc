// SPDX-License-Identifier: Apache-2.0
#include "attribution/cpu/cpu_use.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/text.h"

namespace joulemap::attribution {
namespace {

constexpr std::size_t kMaxCpuColumns = 40;
// Merges readings that are closer than this: ticks of 10 ms would dominate them.
constexpr double kMinReadingInterval_s = 0.18;

double compute_tally_cpu_s(const ScopeTally& tally) { return seconds(tally.cpu_ns + tally.helper_threads_cpu_ns); }

// Identifies a column: phase and layer, or regions where there is neither. Empty: outside of all scopes.
std::vector<std::string> cpu_column_path(const ResolvedScope& resolved_scope) { return resolved_scope.layer_path(); }

// Splits `distributed_cpu_s` among intervals: other processes demand the same number of CPUs in all of them, and get at most
// what the captured work leaves of `cpus`. A water-filling problem, with vessels as wide as the intervals are long.
void distribute_other_cpu_time(std::span<const std::int64_t> edges_ns, std::span<const double> captured_s, double cpus,
                               double distributed_cpu_s, std::span<double> other_cpu_s) {
  if (distributed_cpu_s <= 0) return;
  struct FreeCpuInterval {
    double free_cpus;
    double length_s;
  };
  std::vector<FreeCpuInterval> free_intervals;
  double remaining_length_s = 0;
  for (std::size_t i = 0; i < captured_s.size(); ++i) {
    const double length_s = seconds(edges_ns[i + 1] - edges_ns[i]);
    free_intervals.push_back({std::max(cpus - captured_s[i] / length_s, 0.0), length_s});
    remaining_length_s += length_s;
  }
  std::vector<FreeCpuInterval> intervals_by_free_cpus = free_intervals;
  std::sort(intervals_by_free_cpus.begin(), intervals_by_free_cpus.end(),
            [](const FreeCpuInterval& a, const FreeCpuInterval& b) { return a.free_cpus < b.free_cpus; });
  double level = intervals_by_free_cpus.back().free_cpus;
  for (const FreeCpuInterval& free_interval : intervals_by_free_cpus) {
    if (distributed_cpu_s <= free_interval.free_cpus * remaining_length_s) {
      level = distributed_cpu_s / remaining_length_s;
      break;
    }
    distributed_cpu_s -= free_interval.free_cpus * free_interval.length_s;
    remaining_length_s -= free_interval.length_s;
  }
  for (std::size_t i = 0; i < free_intervals.size(); ++i) {
    other_cpu_s[i] = std::min(free_intervals[i].free_cpus, level) * free_intervals[i].length_s;
  }
}

}  // namespace

std::vector<double> busy_wall_s(const Activity& activity) {
  std::vector<double> tally_wall_s;
  double sum_s = 0;
  for (const ScopeTally& tally : activity.scope_tallies) {
    tally_wall_s.push_back(std::max(std::min(seconds(tally.wall_ns), compute_tally_cpu_s(tally)), 0.0));
    sum_s += tally_wall_s.back();
  }
  const double length_s = seconds(activity.end_ns - activity.begin_ns);
  if (sum_s <= length_s) return tally_wall_s;
  for (double& wall_s : tally_wall_s) wall_s *= std::max(length_s, 0.0) / sum_s;
  return tally_wall_s;
}

std::uint16_t CpuUse::column_of_scope(std::uint32_t process, std::uint32_t scope) const {
  const auto scope_column = columns_by_scope.find({process, scope});
  return scope_column == columns_by_scope.end() ? static_cast<std::uint16_t>(column_count - 1) : scope_column->second;
}

void CpuWorkCollector::add(std::uint32_t process, const Activity& activity) {
  const bool is_outside_span = activity.end_ns <= span_.begin_ns || activity.begin_ns >= span_.end_ns;
  if (is_outside_span || activity.end_ns <= activity.begin_ns) return;
  const std::vector<double> tally_wall_s = busy_wall_s(activity);
  for (std::size_t i = 0; i < tally_wall_s.size(); ++i) {
    const ScopeTally& tally = activity.scope_tallies[i];
    if (compute_tally_cpu_s(tally) <= 0) continue;
    scope_slices_.push_back(
        {process, tally.scope, {activity.begin_ns, activity.end_ns, 0, compute_tally_cpu_s(tally), tally_wall_s[i]}});
  }
}

CpuUse CpuWorkCollector::finish(ActivitySums& sums) {
  std::map<std::vector<std::string>, double> cpu_s;
  for (const ScopeSlice& scope_slice : scope_slices_) {
    cpu_s[cpu_column_path(sums.process_activity(scope_slice.process).scopes.resolved_scope(scope_slice.scope))] +=
        scope_slice.slice.cpu_s;
  }
  std::vector<std::pair<double, std::vector<std::string>>> columns_by_cpu_time;
  columns_by_cpu_time.reserve(cpu_s.size());
  for (const auto& [key, used_cpu_s] : cpu_s) columns_by_cpu_time.emplace_back(-used_cpu_s, key);
  std::sort(columns_by_cpu_time.begin(), columns_by_cpu_time.end());
  std::map<std::vector<std::string>, std::uint16_t> columns;
  for (std::size_t i = 0; i < columns_by_cpu_time.size(); ++i) {
    columns[columns_by_cpu_time[i].second] = static_cast<std::uint16_t>(std::min(i, kMaxCpuColumns - 1));
  }
  std::map<std::uint32_t, double> by_process;
  for (const ScopeSlice& scope_slice : scope_slices_) by_process[scope_slice.process] += scope_slice.slice.cpu_s;
  const auto busiest_process = std::max_element(by_process.begin(), by_process.end(),
                                                [](const auto& a, const auto& b) { return a.second < b.second; });
  CpuUse use;
  use.column_count = std::clamp<std::size_t>(columns_by_cpu_time.size(), 1, kMaxCpuColumns);
  for (ScopeSlice& scope_slice : scope_slices_) {
    scope_slice.slice.column =
        columns[cpu_column_path(sums.process_activity(scope_slice.process).scopes.resolved_scope(scope_slice.scope))];
    use.columns_by_scope[{scope_slice.process, scope_slice.scope}] = scope_slice.slice.column;
    use.slices.push_back(scope_slice.slice);
    if (scope_slice.process != busiest_process->first) continue;
    if (!use.sample_spans.empty() && scope_slice.slice.begin_ns < use.sample_spans.back().end_ns) continue;
    use.sample_spans.push_back({scope_slice.slice.begin_ns, scope_slice.slice.end_ns});
  }
  scope_slices_.clear();
  std::stable_sort(use.slices.begin(), use.slices.end(),
                   [](const CpuUse::Slice& a, const CpuUse::Slice& b) { return a.begin_ns < b.begin_ns; });
  return use;
}

double any_cpu_busy_fraction(double command, double other_cpus) {
  return 1 - (1 - std::clamp(command, 0.0, 1.0)) * (1 - std::clamp(other_cpus, 0.0, 1.0));
}

double cpu_power_factor(double cpus, double busy_cpu_exponent) {
  return std::pow(std::max(cpus, 1.0), busy_cpu_exponent - 1);
}

double other_cpu_power_factor(double other_cpu_s, double captured_s, double length_s, double busy_cpu_exponent) {
  return cpu_power_factor(std::max(other_cpu_s / length_s, 1.0) + captured_s / length_s, busy_cpu_exponent);
}

std::optional<double> count_listed_cpus(std::string_view cpu_list) {
  double count = 0;
  while (!cpu_list.empty()) {
    const std::string_view part = cpu_list.substr(0, cpu_list.find(','));
    cpu_list.remove_prefix(std::min(part.size() + 1, cpu_list.size()));
    const std::size_t dash = part.find('-');
    const std::optional<std::uint64_t> first_cpu = parse_u64(part.substr(0, dash));
    const std::optional<std::uint64_t> last_cpu = dash == part.npos ? first_cpu : parse_u64(part.substr(dash + 1));
    if (!first_cpu || !last_cpu || *last_cpu < *first_cpu) return std::nullopt;
    count += static_cast<double>(*last_cpu - *first_cpu + 1);
  }
  return count > 0 ? std::optional(count) : std::nullopt;
}

std::vector<double> other_cpu_s_between(std::span<const std::int64_t> edges_ns, std::span<const double> captured_s,
                                        std::span<const CpuTimePoint> machine, double cpus, double full_fraction) {
  std::vector<double> other_cpu_s(captured_s.size());
  const auto find_interval_index = [&](std::int64_t time_ns) {  // the first one with a later midpoint
    const auto has_earlier_midpoint = [&](std::size_t i) {
      return edges_ns[i] + (edges_ns[i + 1] - edges_ns[i]) / 2 < time_ns;
    };
    std::size_t interval_index = 0;
    for (std::size_t count = captured_s.size(); count > 0;) {
      const std::size_t half_count = count / 2;
      if (has_earlier_midpoint(interval_index + half_count)) {
        interval_index += half_count + 1;
        count -= half_count + 1;
      } else {
        count = half_count;
      }
    }
    return interval_index;
  };
  double deficit_s = 0;
  for (std::size_t i = 1, window_begin_index = 0; i < machine.size(); ++i) {
    const double window_s = seconds(machine[i].time_ns - machine[window_begin_index].time_ns);
    const std::size_t first_interval = find_interval_index(machine[window_begin_index].time_ns);
    const std::size_t end_interval = find_interval_index(machine[i].time_ns);
    if (end_interval <= first_interval || window_s < kMinReadingInterval_s) continue;
    const double intervals_length_s = seconds(edges_ns[end_interval] - edges_ns[first_interval]);
    double remaining_cpu_s = std::min(intervals_length_s / window_s, 1.0) *
                                 (machine[i].used_cpu_s - machine[window_begin_index].used_cpu_s) -
                             deficit_s;
    const bool is_fully_busy = remaining_cpu_s >= full_fraction * cpus * std::min(intervals_length_s, window_s);
    for (std::size_t k = first_interval; k < end_interval; ++k) remaining_cpu_s -= captured_s[k];
    deficit_s = std::max(-remaining_cpu_s, 0.0);
    distribute_other_cpu_time(edges_ns.subspan(first_interval, end_interval - first_interval + 1),
                              captured_s.subspan(first_interval, end_interval - first_interval), cpus,
                              is_fully_busy ? cpus * intervals_length_s : remaining_cpu_s,
                              std::span(other_cpu_s).subspan(first_interval, end_interval - first_interval));
    window_begin_index = i;
  }
  return other_cpu_s;
}

TimeCurve other_cpu_curve(std::span<const CpuTimePoint> machine, const TimeCurve& captured_s, double cpus) {
  TimeCurve other_cpu_time_s(captured_s.span(), captured_s.size());
  std::vector<std::int64_t> edges_ns;
  std::vector<double> captured_cells_s;
  const double cell_ns = captured_s.cell_s() * static_cast<double>(kNanosecondsPerSecond);
  for (std::size_t cell = 0; cell <= captured_s.size(); ++cell) {
    edges_ns.push_back(captured_s.span().begin_ns + std::llround(static_cast<double>(cell) * cell_ns));
    if (cell < captured_s.size()) captured_cells_s.push_back(captured_s[cell]);
  }
  const std::vector<double> other_cpu_s = other_cpu_s_between(edges_ns, captured_cells_s, machine, cpus, 1);
  for (std::size_t cell = 0; cell < other_cpu_s.size(); ++cell) other_cpu_time_s.set(cell, other_cpu_s[cell]);
  other_cpu_time_s.finish();
  return other_cpu_time_s;
}

}  // namespace joulemap::attribution
