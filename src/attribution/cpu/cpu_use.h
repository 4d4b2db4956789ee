// SPDX-License-Identifier: Apache-2.0
//
// CpuUse: CPU use over time, by column: a column is a layer in a phase (or a region), the same in all processes of a
// machine; operations belong to their layer's column. CpuWorkCollector collects it in the second pass over the recording,
// because the fit of a layer's power needs the whole run. Memory: a few dozen bytes for each scope in each recorded
// interval. Pure; CPU seconds, ns of CLOCK_MONOTONIC.
//
// Busy wall time: how long a scope had at least one busy CPU. It is estimated by its upper bound: the time that threads
// were in the scope, or the CPU time if that is less. CPU time divided by busy wall time is the number of CPUs it used.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/time_curve.h"
#include "model/activity.h"

namespace joulemap::attribution {

// Busy wall time, s, of each scope tally of the activity. The sum never exceeds the length of the activity.
std::vector<double> busy_wall_s(const Activity& activity);

struct CpuUse {
  struct Slice {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::uint16_t column = 0;
    double cpu_s = 0;
    double busy_wall_s = 0;

    double mean_busy_cpus() const { return busy_wall_s > 0 ? cpu_s / busy_wall_s : 1; }
  };
  std::size_t column_count = 0;
  std::vector<Slice> slices;           // by begin
  std::vector<TimeSpan> sample_spans;  // intervals of the tallies of the process with the most CPU time
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint16_t> columns_by_scope;  // by process and scope

  // The last column for a scope that used no CPU time.
  std::uint16_t column_of_scope(std::uint32_t process, std::uint32_t scope) const;
};

class CpuWorkCollector {
 public:
  explicit CpuWorkCollector(TimeSpan span) : span_(span) {}

  void add(std::uint32_t process, const Activity& activity);
  // `sums` resolves scopes. The layers with the most CPU time get a column each; if there are more than 40, the last
  // column is the sum of the rest.
  CpuUse finish(ActivitySums& sums);

 private:
  struct ScopeSlice {
    std::uint32_t process;
    std::uint32_t scope;
    CpuUse::Slice slice;
  };
  TimeSpan span_;
  std::vector<ScopeSlice> scope_slices_;
};

// Fraction of time with any busy CPU. `command`: fraction of time in which the command had one; `other_cpus`: mean
// count of CPUs that other processes used. Assumes that the two are independent.
double any_cpu_busy_fraction(double command, double other_cpus);

// Power of a CPU second relative to that of a single busy CPU. It falls with the number of busy CPUs, because the first
// wakes shared parts and clocks fall. `busy_cpu_exponent`: exponent of power over the number of busy CPUs; 1: no such
// effect.
double cpu_power_factor(double cpus, double busy_cpu_exponent);
// The same for work that was not captured: `other_cpu_s` CPU seconds, next to `captured_s`, within `length_s`.
double other_cpu_power_factor(double other_cpu_s, double captured_s, double length_s, double busy_cpu_exponent);

// CPU time of the whole machine.
struct MachineCpuTime {
  std::vector<CpuTimePoint> readings;
  double cpu_count = std::numeric_limits<double>::infinity();
};

// Number of CPUs in a list such as "0-3,8"; nothing where it cannot be parsed.
std::optional<double> count_listed_cpus(std::string_view cpu_list);

// CPU time of the machine beyond the captured time, s, for each interval between two edges. Readings of the machine's
// CPU time are far apart and coarse (10 ms ticks). Assumes that in a window between two readings other processes demand
// a constant number of CPUs, and get at most what the captured work leaves of `cpu_count`. If a window shows less than
// was captured, because of the coarse clock, the deficit is subtracted from the next window.
// `full_fraction`: if the machine's CPUs were busy for at least this fraction of a window, they count as busy for all
// of it.
std::vector<double> other_cpu_s_between(std::span<const std::int64_t> edges_ns, std::span<const double> captured_s,
                                        std::span<const CpuTimePoint> machine, double cpus, double full_fraction);
// The same for the cells of `captured_s`.
TimeCurve other_cpu_curve(std::span<const CpuTimePoint> machine, const TimeCurve& captured_s, double cpus);

}  // namespace joulemap::attribution
