// SPDX-License-Identifier: Apache-2.0
//
// Powers of layers on CPUs.
//
// Model: the energy of packages and memory between two counter readings is the sum of CPU seconds times power over the
// layers (the columns of CpuUse), plus those of all other processes, plus idle power times the elapsed time. The more
// CPUs are busy, the less power each uses: CPU seconds are weighted by cpu_power_factor(), and the fit chooses its
// exponent by the smallest residual.
//
// Nonnegative least squares solve it, with a prior that all layers have one common power. The noisier the readings, the
// stronger the prior. Layers whose power the readings do not identify get energy in proportion to their CPU time, and
// power_replicates contain the spread of their power.
//
// Pure; same input, same bits. Watts, joules, ns of CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "attribution/cpu/cpu_use.h"
#include "attribution/ledger/time_curve.h"

namespace joulemap::attribution {

// Unknowns, in this order: columns of CpuUse, all other processes, idle.
struct CpuPowers {
  std::size_t column_count = 0;
  std::vector<double> watts;                          // by unknown; for columns: of a single busy CPU, above idle
  std::vector<bool> is_regressed;                     // by unknown: from the data; false: CPU time or prior
  std::vector<std::vector<double>> power_replicates;  // by unknown, then by replicate
  std::vector<double> gain_replicates;                // by replicate: gain factor of the counter
  double busy_cpu_exponent = 1;                       // see cpu_power_factor()
  bool is_idle_measured = false;  // idle power comes from moments without busy CPUs, not from the prior
  bool is_fitted = false;         // false: all powers are equal, idle included
  std::size_t observation_count = 0;
  double relative_noise = 0;  // noise of an observation, relative to its mean energy

  std::size_t other_processes_index() const { return column_count; }
  std::size_t idle_index() const { return column_count + 1; }
};

// All inputs of CPU attribution besides the energy.
struct CpuAttributionInputs {
  CpuUse cpu_use;
  CpuPowers powers;
  TimeCurve other_cpu_s;                                       // CPU time of all work that was not captured
  double cpu_count = std::numeric_limits<double>::infinity();  // CPU count of the machine
  std::vector<std::int64_t> counter_reading_times_ns =
      {};                     // of the counters: between two of them only the sum is known
  bool is_estimated = false;  // the energy is an estimate
};

// `domains`: readings of each counter. Returns nothing where there are too few observations or no energy.
std::optional<CpuPowers> fit_cpu_powers(const CpuUse& use, const MachineCpuTime& machine,
                                        std::span<const std::vector<EnergyPoint>> domains);

// Equal powers of 1 W, which split energy by CPU time, for recordings that identify none.
CpuPowers make_equal_cpu_powers(std::size_t columns);
// Fills `powers.gains`. `gain_spread`: relative standard deviation of the gain of the counter or the estimate.
void draw_gain_replicates(CpuPowers& powers, double gain_spread);

}  // namespace joulemap::attribution
