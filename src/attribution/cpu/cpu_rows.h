// SPDX-License-Identifier: Apache-2.0
//
// CpuRows: the rows of the regression of CPU powers: what the counters moved by between two moments, and what CPUs
// did in that time. Rows are as long as it takes to know both: from reading to reading where what ran is told
// closely, else as long as a sum of it. Each is divided by the root of its length, so that noises are alike. Pure;
// joules, seconds.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "attribution/cpu/cpu_use.h"
#include "attribution/ledger/time_curve.h"
#include "statistics/nonnegative_least_squares.h"

namespace joulemap::attribution {

class CpuRows {
 public:
  // Unknowns as those of CpuPowers.
  CpuRows(const CpuUse& use, const MachineTime& machine, std::span<const std::vector<EnergyPoint>> domains,
          double growth);

  std::size_t size() const { return values_.size(); }
  std::size_t unknowns() const { return unknowns_; }
  std::span<const double> operator[](std::size_t row) const {
    return std::span(entries_).subspan(row * unknowns_, unknowns_);
  }
  double value(std::size_t row) const { return values_[row]; }

  std::vector<double> residuals(std::span<const double> watts) const;
  statistics::GramSums sums(std::span<const double> weights) const;

  double joules() const { return joules_; }
  double time_s() const { return time_s_; }
  double cpu_s() const { return cpu_s_; }
  // By unknown: the same, each counted by its crowding; the last is the time.
  const std::vector<double>& crowded_s() const { return crowded_s_; }

 private:
  void fill(const CpuUse& use, const MachineTime& machine, std::span<const std::int64_t> edges_ns, double growth);

  std::size_t unknowns_;
  std::vector<double> entries_;
  std::vector<double> values_;
  double joules_ = 0;
  double time_s_ = 0;
  double cpu_s_ = 0;
  std::vector<double> crowded_s_;
};

}  // namespace joulemap::attribution
