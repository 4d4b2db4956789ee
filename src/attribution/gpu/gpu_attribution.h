// SPDX-License-Identifier: Apache-2.0
//
// GpuAttribution: attributes the energy of each GPU. At each moment it splits the energy among the running kernels and
// idle in proportion to the power of each kernel class and to idle power. The parts of every interval sum to its
// measured energy, whatever the powers are. Where powers are unknown all classes get the same power, which gives a
// time-proportional split. Also computes the interval of each part. Pure; joules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/machine_energy.h"
#include "attribution/ledger/time_curve.h"
#include "model/activity.h"
#include "model/report_result.h"

namespace joulemap::attribution {

inline constexpr std::string_view kTimeShareBasis = "time-share";
inline constexpr std::string_view kRegressedBasis = "regressed";
inline constexpr std::string_view kProbedBasis = "probed";
inline constexpr std::string_view kLibraryBasis = "library";

// Joules of a row by kernel class; the row's interval is computed from them.
class EnergyByColumn {
 public:
  void add(std::uint16_t column, double joules) { column_joules_[column] += joules; }
  void add(const EnergyByColumn& other_energy, double share = 1) {
    for (const auto& [column, joules] : other_energy.column_joules_) column_joules_[column] += share * joules;
  }
  double total_j() const {
    double sum_j = 0;
    for (const auto& [column, joules] : column_joules_) sum_j += joules;
    return sum_j;
  }
  const std::map<std::uint16_t, double>& joules_by_column() const { return column_joules_; }

 private:
  std::map<std::uint16_t, double> column_joules_;
};

class GpuAttribution {
 public:
  // `energy` and `sums` must outlive this object.
  GpuAttribution(const MachineEnergy& energy, const ActivitySums& sums);

  // Joules per second of a kernel of weight 1, within a time span; 0 for a device whose energy is unknown. The energy
  // of a kernel is rate x weight x duration.
  double power_per_weight(const std::string& device, std::int64_t from_ns, std::int64_t to_ns) const;
  // The same for a single kernel. Where idle power is known separately, this is the mean rate of the recorded interval
  // (about a second) that contains the kernel. The model spreads kernels evenly over that interval, but the measured
  // power is high only while they ran: the rate at the kernel's own time would be too high.
  double kernel_power_per_weight(const std::string& device, const Kernel& kernel) const;
  struct KernelWeight {
    double weight = 1;  // power of the kernel's class, W; 1 for all classes if powers are unknown
    std::uint16_t column = 0;
    bool is_power_known = false;  // class powers are known
  };
  // `length_ns`: mean duration of such kernels, which gives their slowdown.
  KernelWeight kernel_weight(const std::string& device, std::uint32_t process, std::uint32_t class_id,
                             double length_ns) const;
  // The weight of a class as a function of the kernel's duration, for callers with many kernels. Refers to this object.
  class KernelWeightByDuration {
   public:
    KernelWeightByDuration() = default;
    KernelWeightByDuration(const PowerFit& fit, std::uint16_t column, double full_speed_ns)
        : fit_(&fit), column_(column), full_speed_ns_(full_speed_ns) {}
    double weight_for_duration(double length_ns) const;
    std::uint16_t column() const { return column_; }
    bool is_power_known() const { return fit_ != nullptr; }

   private:
    const PowerFit* fit_ = nullptr;  // null: powers are unknown, all weights are 1
    std::uint16_t column_ = 0;
    double full_speed_ns_ = 0;  // 0: unknown
  };
  KernelWeightByDuration kernel_weight_by_duration(const std::string& device, std::uint32_t process,
                                                   std::uint32_t class_id) const;

  double idle_j() const;
  // Idle energy and idle time for each recorded second of waiting, within a time span; 0 for an unknown device.
  struct IdlePerWaitingSecond {
    double watts = 0;                 // J of idle energy per recorded second of waiting
    double idle_s_per_waiting_s = 0;  // idle s per recorded s of waiting; not 1, because tracing slows steps down
  };
  IdlePerWaitingSecond idle_per_waiting_second(const std::string& device, std::int64_t from_ns,
                                               std::int64_t to_ns) const;
  // Mean power, in W, of the idle device within a time span, or of the whole run if it was never idle there. Empty if
  // the device is unknown or was never idle.
  std::optional<double> idle_power_w(const std::string& device, std::int64_t from_ns, std::int64_t to_ns) const;
  // Idle energy that no recorded wait explains: before the first kernel of the run, after the last one, in between.
  struct UnexplainedIdle {
    std::string device;
    IdleAmount before_first_kernel;
    IdleAmount between_kernels;
    IdleAmount after_last_kernel;
  };
  std::vector<UnexplainedIdle> unexplained_idle() const;
  // UnexplainedIdle between the first and the last kernel, within a time span.
  IdleAmount unexplained_idle_between(const std::string& device, std::int64_t from_ns, std::int64_t to_ns) const;
  // The 90 % interval of an amount of idle energy of that domain; none where powers are unknown.
  std::optional<std::pair<double, double>> idle_energy_interval(const std::string& domain, double joules) const;
  // Time and energy of co-tenants (processes outside of the command), for each GPU that they used.
  struct CoTenantEnergy {
    std::string domain;
    double time_s = 0;
    double energy_j = 0;
    EnergyByColumn energy_by_column = {};
  };
  std::vector<CoTenantEnergy> co_tenant_energies() const;
  // fill_in_energy_details() fills in basis, interval and dynamic energy of a row. Call add_to_total() for all rows
  // first.
  void add_to_total(const std::string& domain, const EnergyByColumn& joules) {
    class_joules_by_domain_[domain].add(joules);
  }
  void fill_in_energy_details(ReportRow& row, const EnergyByColumn& joules) const;
  // Reports which energy is attributed by the kernel library, and which by time because nothing better is known.
  void add_attribution_basis_diagnostics(Diagnostics& diagnostics) const;

 private:
  struct DeviceEnergySplit {
    const MachineEnergy::Gpu* gpu = nullptr;
    TimeCurve power_per_weight;
    double idle_j = 0;
    double co_tenant_j = 0;
    bool has_idle_time = true;  // false: only co-tenants' time is known, and the rest is unattributed
    std::span<const TimeSpan> slices = {};
    TimeSpan work = {};  // from the first kernel of the run to the last one, clamped to the analysed time
    bool has_idle_power = false;
    TimeCurve idle_j_over_time = {};
    TimeCurve idle_s_over_time = {};
    TimeCurve idle_j_per_waiting_s = {};  // J per second of waiting, times the length of a cell
    TimeCurve idle_s_per_waiting_s = {};  // idle seconds per second of waiting, likewise
    TimeCurve unexplained_j = {};
    TimeCurve unexplained_s = {};
  };
  static void split_idle_energy_among_waits(DeviceEnergySplit& device, const TimeCurve* wait_s);
  IdleAmount unexplained_amount_between(const DeviceEnergySplit& device, std::int64_t from_ns,
                                        std::int64_t to_ns) const;
  static DeviceEnergySplit split_gpu_energy(const MachineEnergy::Gpu& gpu, const TimeCurve* busy_s);
  std::vector<double> energy_replicates(const DeviceEnergySplit& device, const EnergyByColumn& joules,
                                        const EnergyByColumn& domain_energy) const;
  const DeviceEnergySplit* find_device(const std::string& domain) const;

  const MachineEnergy& machine_energy_;
  std::map<std::string, DeviceEnergySplit> devices_;
  std::map<std::string, EnergyByColumn> class_joules_by_domain_;
};

}  // namespace joulemap::attribution
