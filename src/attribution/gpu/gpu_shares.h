// SPDX-License-Identifier: Apache-2.0
//
// GpuShares: how the energy of each GPU is shared out: at each moment among what runs then, in proportion to what its
// classes draw, and to idling in proportion to what that draws. So nothing is lost or made up, in no interval, whatever the
// powers are. Where they are not known all are alike: shares of time. Also tells how sure such shares are. Pure; joules.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/ledger/activity_sums.h"
#include "attribution/ledger/machine_energy.h"
#include "attribution/ledger/time_curve.h"
#include "model/activity.h"
#include "model/report_result.h"

namespace joulemap::attribution {

inline constexpr std::string_view kByTimeShare = "time-share";
inline constexpr std::string_view kRegressed = "regressed";
inline constexpr std::string_view kProbed = "probed";
inline constexpr std::string_view kByLibrary = "library";

// Joules of a row by class of kernels: what its interval follows from.
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

class GpuShares {
 public:
  // Both outlive it.
  GpuShares(const MachineEnergy& energy, const ActivitySums& sums);

  // Joules for each second of a kernel of weight 1, in a stretch of time; 0 for a device whose energy is not known.
  double rate(const std::string& device, std::int64_t from_ns, std::int64_t to_ns) const;
  // The same of a single kernel. Where working is told from idling it is that of the stretch which counts the kernel: when
  // within the stretch its kernels ran is not in the shares, and power is, so that its moment would be weighed twice.
  double rate_of_kernel(const std::string& device, const Kernel& kernel) const;
  struct Weight {
    double weight = 1;
    std::uint16_t column = 0;
    bool known = false;  // powers are
  };
  // `length_ns`: of such kernels on average, which tells how much they were slowed down; 0: at full speed.
  Weight weight(const std::string& device, std::uint32_t process, std::uint32_t class_id, double length_ns = 0) const;

  double idle_j() const;
  // What processes had that are not the command's, for each GPU that they used.
  struct Background {
    std::string domain;
    double time_s = 0;
    double energy_j = 0;
    ClassJoules by_class = {};
  };
  std::vector<Background> backgrounds() const;
  // Fills in basis, interval and dynamic energy of a row of that domain; after all rows are known by note().
  void note(const std::string& domain, const ClassJoules& joules) { noted_[domain].add(joules); }
  void describe(ReportRow& row, const ClassJoules& joules) const;
  // Which energy is shared by what the kernel library knows, and which by time for want of better.
  void diagnose(Diagnostics& diagnostics) const;

 private:
  struct Device {
    const MachineEnergy::Gpu* gpu = nullptr;
    TimeCurve rate;
    double idle_j = 0;
    double others_j = 0;
    bool tells_idle = true;  // else only what others ran there is known: the rest is nobody's
    std::span<const TimeSpan> stretches = {};
    bool knows_idle_w = false;
  };
  static Device shared_out(const MachineEnergy::Gpu& gpu, const TimeCurve* busy_s);
  std::vector<double> replicates_of(const Device& device, const ClassJoules& joules, const ClassJoules& all) const;
  const Device* of_domain(const std::string& domain) const;

  std::map<std::string, Device> devices_;
  std::map<std::string, ClassJoules> noted_;  // by domain
};

}  // namespace joulemap::attribution
