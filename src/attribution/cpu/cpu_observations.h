// SPDX-License-Identifier: Apache-2.0
//
// CpuObservations: the observations of the CPU power regression: the energy by which the counters advanced between two
// times, and the CPU time used between them. An observation lasts from reading to reading where CPU time was sampled
// densely, and otherwise as long as one sum of CPU time. Each is divided by the square root of its length, so that all
// have the same noise. Pure; joules, seconds.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "attribution/cpu/cpu_use.h"
#include "attribution/ledger/time_curve.h"
#include "statistics/nonnegative_least_squares.h"

namespace joulemap::attribution {

class CpuObservations {
 public:
  // Unknowns are those of CpuPowers. `domains`: readings of each counter. Empty if a counter has fewer than two.
  CpuObservations(const CpuUse& use, const MachineCpuTime& machine, std::span<const std::vector<EnergyPoint>> domains,
                  double busy_cpu_exponent);

  std::size_t size() const { return scaled_energies_.size(); }
  std::size_t unknown_power_count() const { return unknown_count_; }
  // Coefficients of an observation, by unknown: weighted CPU seconds, and for idle the elapsed time.
  std::span<const double> operator[](std::size_t row) const {
    return std::span(matrix_).subspan(row * unknown_count_, unknown_count_);
  }
  double scaled_energy(std::size_t row) const { return scaled_energies_[row]; }

  std::vector<double> residuals(std::span<const double> watts) const;
  statistics::NormalEquations normal_equations(std::span<const double> weights) const;

  double energy_j() const { return energy_j_; }
  double time_s() const { return time_s_; }
  double cpu_s() const { return cpu_s_; }
  // By unknown: CPU seconds of all observations, weighted with cpu_power_factor(); the last is the elapsed time.
  const std::vector<double>& weighted_cpu_s() const { return weighted_cpu_s_; }

 private:
  void fill_matrix(const CpuUse& use, const MachineCpuTime& machine, std::span<const std::int64_t> edges_ns,
                   double busy_cpu_exponent);

  std::size_t unknown_count_;
  std::vector<double> matrix_;
  std::vector<double> scaled_energies_;
  double energy_j_ = 0;
  double time_s_ = 0;
  double cpu_s_ = 0;
  std::vector<double> weighted_cpu_s_;
};

}  // namespace joulemap::attribution
