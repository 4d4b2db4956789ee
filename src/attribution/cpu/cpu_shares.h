// SPDX-License-Identifier: Apache-2.0
//
// CpuShares: how the energy of CPUs and memory is shared out: at each moment among what runs then. What CPUs at work
// draw goes by CPU time and power; idle power goes to who has a CPU at work, and is idle while nobody has. Where
// powers are not known all goes by CPU time. Nothing is lost or made up, in no cell, whatever the powers are. What
// was not captured is the command's own (nobody's row) or others' ("background"). Also tells how sure such shares
// are. Pure; joules, seconds.
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

  // What a stretch of time gives: for each joule that the powers would make, and for each second of presence.
  struct Rates {
    double per_modelled_j = 0;
    double per_present_s = 0;
    double other_cpus = 0;  // at work for others, on average
  };
  Rates rates(std::int64_t from_ns, std::int64_t to_ns) const;

  // Joules by unknown of CpuPowers: a column's, and its part of idle power.
  ClassJoules part(std::uint32_t process, const PlaceTally& tally, double present_s, const Rates& rates) const;
  const ClassJoules& background() const { return background_; }
  double background_s() const { return background_s_; }
  double idle_j() const { return idle_j_; }

  // Fills in basis, interval and dynamic energy of a row; after all that ran is known by note(). `spread`: a standard
  // deviation of the row's own, as a share, of what powers do not explain.
  void note(const ClassJoules& joules) { noted_.add(joules); }
  void describe(ReportRow& row, const ClassJoules& joules, double spread) const;

 private:
  struct Cell {
    double joules = 0;
    double length_s = 0;
    double captured_s = 0;
    double present_s = 0;  // of all processes together: may be longer than the cell
    double modelled_j = 0;
    double other_s = 0;
    double background = 0;  // share of the others' time
  };
  double modelled(std::uint16_t column, double cpu_s, double cpus) const;
  double others_j(const Cell& now) const;
  double all_j(const Cell& now) const;
  void draw_within_readings(std::vector<Cell>& cells) const;
  void share_out(std::size_t cell, const Cell& now);
  void share_out_by_time(std::size_t cell, const Cell& now);
  std::vector<double> replicates_of(const ClassJoules& joules) const;

  const CpuKnowledge* known_;
  bool tells_idle_;
  TimeCurve per_modelled_j_;
  TimeCurve per_present_s_;
  ClassJoules noted_;  // all but idling
  ClassJoules background_;
  double background_s_ = 0;
  double idle_j_ = 0;
};

}  // namespace joulemap::attribution
