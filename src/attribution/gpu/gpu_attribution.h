// SPDX-License-Identifier: Apache-2.0
//
// GpuAttribution: attributes the energy of each GPU. At each moment it splits the energy among the running kernels and idle
// in proportion to the power of each kernel class and to idle power. The parts of every interval sum to its measured
// energy, whatever the powers are. Where powers are unknown all classes get the same power, which gives a
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
class ClassJoules {
 public:
  void add(std::uint16_t column, double joules) { by_column_[column] += joules; }
  void add(const ClassJoules& other, double share = 1) {
    for (const auto& [column, joules] : other.by_column_) by_column_[column] += share * joules;
  }
  double sum() const {
    double sum_j = 0;
    for (const auto& [column, joules] : by_column_) sum_j += joules;
    return sum_j;
  }
  const std::map<std::uint16_t, double>& by_column() const { return by_column_; }

 private:
  std::map<std::uint16_t, double> by_column_;
};

class GpuAttribution {
 public:
  // `energy` and `sums` must outlive this object.
  GpuAttribution(const MachineEnergy& energy, const ActivitySums& sums);

  // Joules per second of a kernel of weight 1, within a time span; 0 for a device whose energy is unknown.
  double rate(const std::string& device, std::int64_t from_ns, std::int64_t to_ns) const;
  // The same for a single kernel. Where idle power is known separately, this is the rate of the stretch that contains
  // the kernel. The weights do not model when in the stretch its kernels ran, but the power curve shows it. The rate at
  // the kernel's own time would therefore count that twice.
  double rate_of_kernel(const std::string& device, const Kernel& kernel) const;
  struct Weight {
    double weight = 1;
    std::uint16_t column = 0;
    bool is_power_known = false;  // class powers are known
  };
  // `length_ns`: mean duration of such kernels, which gives their slowdown; 0: full speed.
  Weight weight(const std::string& device, std::uint32_t process, std::uint32_t class_id, double length_ns = 0) const;

  double idle_j() const;
  // Joules per second that the idle device waited, within a time span.
  struct WaitingRate {
    double watts = 0;       // of a recorded second of waiting
    double time_share = 0;  // of it that the device was idle: traced steps that extrapolate are slower than the others
  };
  WaitingRate waiting_rate(const std::string& device, std::int64_t from_ns, std::int64_t to_ns) const;
  // Mean power of the idle device within a time span; of the whole run if it was never idle there.
  std::optional<double> idle_power_w(const std::string& device, std::int64_t from_ns, std::int64_t to_ns) const;
  // Idle energy of which nothing is known but the time: before the first kernel, after the last one, in between.
  struct UnexplainedIdle {
    std::string device;
    double before_j = 0, between_j = 0, after_j = 0;
    double before_s = 0, between_s = 0, after_s = 0;
  };
  std::vector<UnexplainedIdle> unexplained_idle() const;
  // The part of it between the first and the last kernel that lies in a time span.
  struct IdleAmount {
    double time_s = 0;
    double energy_j = 0;
  };
  IdleAmount unexplained_between(const std::string& device, std::int64_t from_ns, std::int64_t to_ns) const;
  // The 90 % interval of an amount of idle energy of that domain; none where powers are unknown.
  std::optional<std::pair<double, double>> idle_interval(const std::string& domain, double joules) const;
  // Time and energy of co-tenants (processes outside of the command), for each GPU that they used.
  struct Background {
    std::string domain;
    double time_s = 0;
    double energy_j = 0;
    ClassJoules by_class = {};
  };
  std::vector<Background> backgrounds() const;
  // describe() fills in basis, interval and dynamic energy of a row of that domain. Call note() for all rows first.
  void add_to_total(const std::string& domain, const ClassJoules& joules) { total_by_domain_[domain].add(joules); }
  void describe(ReportRow& row, const ClassJoules& joules) const;
  // Reports which energy is attributed by the kernel library, and which by time because nothing better is known.
  void diagnose(Diagnostics& diagnostics) const;

 private:
  struct Device {
    const MachineEnergy::Gpu* gpu = nullptr;
    TimeCurve rate;
    double idle_j = 0;
    double co_tenant_j = 0;
    bool has_idle_time = true;  // false: only co-tenants' work is known, and the rest is unattributed
    std::span<const TimeSpan> slices = {};
    TimeSpan work = {};  // from the first kernel of the run to the last one, as far as it is analysed
    bool has_idle_power = false;
    TimeCurve idle_j_over_time = {};
    TimeCurve idle_s_over_time = {};
    TimeCurve waiting_rate = {};        // J by second of waiting, times the length of a cell
    TimeCurve waiting_time_share = {};  // idle seconds by second of waiting, likewise
    TimeCurve unexplained_j = {};
    TimeCurve unexplained_s = {};
  };
  static void split_idle(Device& device, const TimeCurve* wait_s);
  static Device split_energy(const MachineEnergy::Gpu& gpu, const TimeCurve* busy_s);
  std::vector<double> replicates_of(const Device& device, const ClassJoules& joules, const ClassJoules& all) const;
  const Device* find_device(const std::string& domain) const;

  std::map<std::string, Device> devices_;
  std::map<std::string, ClassJoules> total_by_domain_;  // by domain
};

}  // namespace joulemap::attribution
