// SPDX-License-Identifier: Apache-2.0
//
// CpuShares: attributes the energy of CPUs and memory, at each moment among the work that runs then. Energy of busy
// CPUs is split by CPU time and power. Idle power goes to the work that has a busy CPU, and is reported as idle while
// no CPU is busy. Where powers are unknown all energy is split by CPU time. The parts of every cell sum to its energy,
// whatever the powers are. Work that was not captured is either the command's own (unattributed) or that of other
// processes ("background"). Also computes the interval of each part. Pure; joules, seconds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "attribution/gpu/gpu_shares.h"
#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/machine_energy.h"
#include "attribution/ledger/time_curve.h"
#include "model/report_result.h"

namespace joulemap::attribution {

inline constexpr std::string_view kByCpuTime = "cpu-time";
inline constexpr std::string_view kEstimated = "estimated";

class CpuShares {
 public:
  CpuShares(const MachineEnergy& energy, const ActivitySums& sums);

  // Attribution rates within a time span: joules per modelled joule, and joules per second of presence.
  struct Rates {
    double per_modelled_j = 0;
    double per_present_s = 0;
    double other_cpus = 0;  // mean count of CPUs busy for other processes
  };
  Rates rates(std::int64_t from_ns, std::int64_t to_ns) const;

  // Joules by unknown of CpuPowers: a column's energy, and its part of idle power.
  ClassJoules part(std::uint32_t process, const ScopeTally& tally, double present_s, const Rates& rates) const;
  const ClassJoules& background() const { return background_; }
  double background_s() const { return background_s_; }
  double idle_j() const { return idle_j_; }

  // describe() fills in basis, interval and dynamic energy of a row. Call note() for all work first. `spread`: relative
  // standard deviation of the row that the powers do not explain.
  void note(const ClassJoules& joules) { noted_.add(joules); }
  void describe(ReportRow& row, const ClassJoules& joules, double spread) const;

 private:
  struct Cell {
    double joules = 0;
    double length_s = 0;
    double captured_s = 0;
    double present_s = 0;  // summed over all processes: may exceed the cell
    double modelled_j = 0;
    double other_s = 0;
    double background = 0;  // fraction of other_s that is not the command's
  };
  double modelled(std::uint16_t column, double cpu_s, double cpus) const;
  double others_j(const Cell& now) const;
  double all_j(const Cell& now) const;
  void draw_within_readings(std::vector<Cell>& cells) const;
  void share_out(std::size_t cell, const Cell& now);
  void share_out_by_time(std::size_t cell, const Cell& now);
  std::vector<double> replicates_of(const ClassJoules& joules) const;

  const CpuKnowledge* known_;
  bool has_idle_time_;
  TimeCurve per_modelled_j_;
  TimeCurve per_present_s_;
  ClassJoules noted_;  // all but idle
  ClassJoules background_;
  double background_s_ = 0;
  double idle_j_ = 0;
};

}  // namespace joulemap::attribution
