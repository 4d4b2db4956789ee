// SPDX-License-Identifier: Apache-2.0
//
// CpuAttribution: attributes the energy of CPUs and memory, at each moment to the work that runs then. Energy of busy
// CPUs is split by CPU time and power. Idle power is attributed to the work that has a busy CPU, and is reported as
// idle while no CPU is busy. Where powers are unknown all energy is split by CPU time. The parts of every cell sum to
// its energy, whatever the powers are. Work that was not captured is either the command's own (unattributed) or that of
// other processes ("background"). Also computes the interval of each part. Pure; joules, seconds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "attribution/gpu/gpu_attribution.h"
#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/machine_energy.h"
#include "attribution/ledger/time_curve.h"
#include "model/report_result.h"

namespace joulemap::attribution {

inline constexpr std::string_view kCpuTimeBasis = "cpu-time";
inline constexpr std::string_view kEstimatedBasis = "estimated";

class CpuAttribution {
 public:
  CpuAttribution(const MachineEnergy& energy, const ActivitySums& sums);

  // Attribution rates within a time span.
  struct Rates {
    double measured_j_per_modelled_j = 0;  // measured J per modelled J
    double idle_j_per_busy_wall_s = 0;     // idle J per second of busy wall time (cpu_use.h)
    double uncaptured_busy_cpus = 0;       // mean count of CPUs busy with work that was not captured
  };
  Rates mean_rates_between(std::int64_t from_ns, std::int64_t to_ns) const;

  // Joules of a tally by unknown of CpuPowers: its energy by CPU time, and its part of idle power. `busy_wall_s`: its
  // busy wall time, as busy_wall_s() returns it.
  EnergyByColumn attribute_tally(std::uint32_t process, const ScopeTally& tally, double busy_time_s,
                                 const Rates& rates) const;
  const EnergyByColumn& background_energy() const { return background_energy_; }
  double background_s() const { return background_s_; }
  double idle_j() const { return idle_j_over_time_.total(); }
  const TimeCurve& idle_j_over_time() const { return idle_j_over_time_; }

  // fill_in_energy_details() fills in basis, interval and dynamic energy of a row. Call add_to_total() with the energy
  // of all tallies first. `additional_relative_sd`: of the row, besides that of the powers.
  void add_to_total(const EnergyByColumn& joules) { energy_by_unknown_.add(joules); }
  void fill_in_energy_details(ReportRow& row, const EnergyByColumn& joules, double additional_relative_sd) const;

 private:
  struct TimeCell {
    double joules = 0;
    double length_s = 0;
    double captured_s = 0;
    double busy_wall_s = 0;  // busy wall time, summed over all processes: may exceed the length of the cell
    double modelled_j = 0;
    double other_cpu_s = 0;
    double background_fraction = 0;  // fraction of other_cpu_s that is not the command's
  };
  double modelled_cpu_j(std::uint16_t column, double cpu_s, double cpus) const;
  double modelled_other_processes_j(const TimeCell& cell_values) const;
  double modelled_cell_j(const TimeCell& cell_values) const;
  void redistribute_between_readings(std::vector<TimeCell>& cells) const;
  void attribute_cell(std::size_t cell, const TimeCell& cell_values);
  void attribute_cell_by_time(std::size_t cell, const TimeCell& cell_values);
  std::vector<double> energy_replicates(const EnergyByColumn& joules) const;

  const CpuAttributionInputs* inputs_;
  bool has_idle_time_;
  TimeCurve measured_j_per_modelled_j_;
  TimeCurve idle_j_per_busy_wall_s_;
  EnergyByColumn energy_by_unknown_;  // all energy but idle_j()
  EnergyByColumn background_energy_;
  double background_s_ = 0;
  TimeCurve idle_j_over_time_;
};

}  // namespace joulemap::attribution
