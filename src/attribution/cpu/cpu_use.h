// SPDX-License-Identifier: Apache-2.0
//
// CpuUse: what CPUs did when, column by column: a column is a layer in a phase (or a region), the same in all processes of a
// machine; operations are their layer's. The second look at a recording collects it (CpuWork), because what a layer draws is
// told by all of the run. A few dozen bytes for each place and stretch. Pure; CPU seconds, CLOCK_MONOTONIC nanoseconds.
//
// Presence: for how long a place had at least one CPU at work, as far as it can be known: no longer than a thread was
// there, no longer than the CPU time it used. So it is known how many CPUs it had there.
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

// By tally of the activity. No more than all of the stretch is ever somebody's.
std::vector<double> presence_s(const Activity& activity);

struct CpuUse {
  struct Piece {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::uint16_t column = 0;
    double cpu_s = 0;
    double presence_s = 0;

    double cpus() const { return presence_s > 0 ? cpu_s / presence_s : 1; }
  };
  std::size_t columns = 0;
  std::vector<Piece> pieces;        // by begin
  std::vector<TimeSpan> stretches;  // of the process that used the most: how closely it was told what ran
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint16_t> column_of;  // by process and place

  std::uint16_t column(std::uint32_t process, std::uint32_t place) const;
};

class CpuWork {
 public:
  explicit CpuWork(TimeSpan span) : span_(span) {}

  void add(std::uint32_t process, const Activity& activity);
  // `sums` knows what places mean. The columns that used the most stand alone, the rest are one, the last.
  CpuUse finish(ActivitySums& sums);

 private:
  struct Stretch {
    std::uint32_t process;
    std::uint32_t place;
    CpuUse::Piece piece;
  };
  TimeSpan span_;
  std::vector<Stretch> stretches_;
};

// The share of a time in which any CPU was at work: the command was for that share, others used so many CPUs on
// average. The two know nothing of each other.
double any_at_work(double command, double other_cpus);

// What a CPU second draws against one of a CPU that is alone at work: the more are busy, the less does each, because
// the first wakes what all share and clocks fall. `growth`: power grows with the number of busy CPUs to this power, 1
// for none of that.
double crowding(double cpus, double growth);
// The same for whatever was not captured, in a time of this length.
double others_crowding(double other_s, double captured_s, double length_s, double growth);

// What all CPUs of the machine did.
struct MachineTime {
  std::vector<CpuTimePoint> readings;
  double cpus = std::numeric_limits<double>::infinity();
};

// How many CPUs a list such as "0-3,8" names; nothing where it cannot be read.
std::optional<double> count_cpus(std::string_view list);

// What the machine used besides what was captured. Its readings are far apart and coarse (10 ms): between two of them
// others are taken to want the same number of CPUs all the time, and to get it as far as the captured left some of
// all `cpus`. A reading that shows less than was captured, because its clock is coarse, is made up for by the next.
// `full`: where all CPUs were busy for so much of the time, they were for all of it.
std::vector<double> others_between(std::span<const std::int64_t> edges_ns, std::span<const double> captured_s,
                                   std::span<const CpuTimePoint> machine, double cpus, double full);
TimeCurve other_cpu_time(std::span<const CpuTimePoint> machine, const TimeCurve& captured_s, double cpus);

}  // namespace joulemap::attribution
