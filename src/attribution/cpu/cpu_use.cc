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

double cpu_s_of_tally(const ScopeTally& tally) { return seconds(tally.cpu_ns + tally.helper_threads_cpu_ns); }

// Identifies a column: phase and layer, or regions where there is neither. Empty: outside of all scopes.
std::vector<std::string> cpu_column_path(const ResolvedScope& resolved_scope) { return resolved_scope.layer_path(); }

// Splits `amount_s` among intervals: other processes demand the same number of CPUs in all of them, and get at most
// what the captured work leaves of `cpus`. A water-filling problem, with vessels as wide as the intervals are long.
void distribute_other_cpu_time(std::span<const std::int64_t> edges_ns, std::span<const double> captured_s, double cpus,
                               double amount_s, std::span<double> other_cpu_s) {
  if (amount_s <= 0) return;
  struct FreeCpuInterval {
    double free_cpus;
    double length_s;
  };
  std::vector<FreeCpuInterval> vessels;
  double width_s = 0;
  for (std::size_t i = 0; i < captured_s.size(); ++i) {
    const double length_s = seconds(edges_ns[i + 1] - edges_ns[i]);
    vessels.push_back({std::max(cpus - captured_s[i] / length_s, 0.0), length_s});
    width_s += length_s;
  }
  std::vector<FreeCpuInterval> by_height = vessels;
  std::sort(by_height.begin(), by_height.end(),
            [](const FreeCpuInterval& a, const FreeCpuInterval& b) { return a.free_cpus < b.free_cpus; });
  double level = by_height.back().free_cpus;
  for (const FreeCpuInterval& vessel : by_height) {
    if (amount_s <= vessel.free_cpus * width_s) {
      level = amount_s / width_s;
      break;
    }
    amount_s -= vessel.free_cpus * vessel.length_s;
    width_s -= vessel.length_s;
  }
  for (std::size_t i = 0; i < vessels.size(); ++i) {
    other_cpu_s[i] = std::min(vessels[i].free_cpus, level) * vessels[i].length_s;
  }
}

}  // namespace

std::vector<double> busy_wall_s(const Activity& activity) {
  std::vector<double> tally_wall_s;
  double sum_s = 0;
  for (const ScopeTally& tally : activity.scope_tallies) {
    tally_wall_s.push_back(std::max(std::min(seconds(tally.wall_ns), cpu_s_of_tally(tally)), 0.0));
    sum_s += tally_wall_s.back();
  }
  const double length_s = seconds(activity.end_ns - activity.begin_ns);
  if (sum_s <= length_s) return tally_wall_s;
  for (double& one_s : tally_wall_s) one_s *= std::max(length_s, 0.0) / sum_s;
  return tally_wall_s;
}

std::uint16_t CpuUse::column_of_scope(std::uint32_t process, std::uint32_t scope) const {
  const auto known = columns_by_scope.find({process, scope});
  return known == columns_by_scope.end() ? static_cast<std::uint16_t>(column_count - 1) : known->second;
}

void CpuWork::add(std::uint32_t process, const Activity& activity) {
  const bool outside = activity.end_ns <= span_.begin_ns || activity.begin_ns >= span_.end_ns;
  if (outside || activity.end_ns <= activity.begin_ns) return;
  const std::vector<double> tally_wall_s = busy_wall_s(activity);
  for (std::size_t i = 0; i < tally_wall_s.size(); ++i) {
    const ScopeTally& tally = activity.scope_tallies[i];
    if (cpu_s_of_tally(tally) <= 0) continue;
    scope_slices_.push_back(
        {process, tally.scope, {activity.begin_ns, activity.end_ns, 0, cpu_s_of_tally(tally), tally_wall_s[i]}});
  }
}

CpuUse CpuWork::finish(ActivitySums& sums) {
  std::map<std::vector<std::string>, double> cpu_s;
  for (const ScopeSlice& scope_slice : scope_slices_) {
    cpu_s[cpu_column_path(sums.process_activity(scope_slice.process).scopes.resolved_scope(scope_slice.scope))] +=
        scope_slice.slice.cpu_s;
  }
  std::vector<std::pair<double, std::vector<std::string>>> order;
  order.reserve(cpu_s.size());
  for (const auto& [key, used] : cpu_s) order.emplace_back(-used, key);
  std::sort(order.begin(), order.end());
  std::map<std::vector<std::string>, std::uint16_t> columns;
  for (std::size_t i = 0; i < order.size(); ++i) {
    columns[order[i].second] = static_cast<std::uint16_t>(std::min(i, kMaxCpuColumns - 1));
  }
  std::map<std::uint32_t, double> by_process;
  for (const ScopeSlice& scope_slice : scope_slices_) by_process[scope_slice.process] += scope_slice.slice.cpu_s;
  const auto leader = std::max_element(by_process.begin(), by_process.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
  CpuUse use;
  use.column_count = std::clamp<std::size_t>(order.size(), 1, kMaxCpuColumns);
  for (ScopeSlice& scope_slice : scope_slices_) {
    scope_slice.slice.column =
        columns[cpu_column_path(sums.process_activity(scope_slice.process).scopes.resolved_scope(scope_slice.scope))];
    use.columns_by_scope[{scope_slice.process, scope_slice.scope}] = scope_slice.slice.column;
    use.slices.push_back(scope_slice.slice);
    if (scope_slice.process != leader->first) continue;
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

double other_cpu_power_factor(double other_s, double captured_s, double length_s, double busy_cpu_exponent) {
  return cpu_power_factor(std::max(other_s / length_s, 1.0) + captured_s / length_s, busy_cpu_exponent);
}

std::optional<double> count_listed_cpus(std::string_view list) {
  double count = 0;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(part.size() + 1, list.size()));
    const std::size_t dash = part.find('-');
    const std::optional<std::uint64_t> first = parse_u64(part.substr(0, dash));
    const std::optional<std::uint64_t> last = dash == part.npos ? first : parse_u64(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    count += static_cast<double>(*last - *first + 1);
  }
  return count > 0 ? std::optional(count) : std::nullopt;
}

std::vector<double> other_cpu_s_between(std::span<const std::int64_t> edges_ns, std::span<const double> captured_s,
                                        std::span<const CpuTimePoint> machine, double cpus, double full_fraction) {
  std::vector<double> other_cpu_s(captured_s.size());
  const auto interval_at = [&](std::int64_t time_ns) {  // the first one with a later midpoint
    const auto is_before = [&](std::size_t i) { return edges_ns[i] + (edges_ns[i + 1] - edges_ns[i]) / 2 < time_ns; };
    std::size_t first = 0;
    for (std::size_t count = captured_s.size(); count > 0;) {
      const std::size_t half = count / 2;
      if (is_before(first + half)) {
        first += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return first;
  };
  double owed_s = 0;
  for (std::size_t i = 1, from = 0; i < machine.size(); ++i) {
    const double window_s = seconds(machine[i].time_ns - machine[from].time_ns);
    const std::size_t first = interval_at(machine[from].time_ns);
    const std::size_t last = interval_at(machine[i].time_ns);
    if (last <= first || window_s < kMinReadingInterval_s) continue;
    const double inside_s = seconds(edges_ns[last] - edges_ns[first]);
    double left_s = std::min(inside_s / window_s, 1.0) * (machine[i].used_cpu_s - machine[from].used_cpu_s) - owed_s;
    const bool is_full = left_s >= full_fraction * cpus * std::min(inside_s, window_s);
    for (std::size_t k = first; k < last; ++k) left_s -= captured_s[k];
    owed_s = std::max(-left_s, 0.0);
    distribute_other_cpu_time(edges_ns.subspan(first, last - first + 1), captured_s.subspan(first, last - first), cpus,
                              is_full ? cpus * inside_s : left_s, std::span(other_cpu_s).subspan(first, last - first));
    from = i;
  }
  return other_cpu_s;
}

TimeCurve other_cpu_curve(std::span<const CpuTimePoint> machine, const TimeCurve& captured_s, double cpus) {
  TimeCurve other_s(captured_s.span(), captured_s.size());
  std::vector<std::int64_t> edges_ns;
  std::vector<double> cells_s;
  const double cell_ns = captured_s.cell_s() * static_cast<double>(kNanosecondsPerSecond);
  for (std::size_t cell = 0; cell <= captured_s.size(); ++cell) {
    edges_ns.push_back(captured_s.span().begin_ns + std::llround(static_cast<double>(cell) * cell_ns));
    if (cell < captured_s.size()) cells_s.push_back(captured_s[cell]);
  }
  const std::vector<double> other_cpu_s = other_cpu_s_between(edges_ns, cells_s, machine, cpus, 1);
  for (std::size_t cell = 0; cell < other_cpu_s.size(); ++cell) other_s.set(cell, other_cpu_s[cell]);
  other_s.finish();
  return other_s;
}

}  // namespace joulemap::attribution
