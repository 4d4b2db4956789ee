// SPDX-License-Identifier: Apache-2.0
//
// What layers draw on CPUs: the energy between two readings of the counters (packages and memory together) is, over
// columns of CpuUse, CPU seconds times watts, the same for whatever else the machine did, and idle power all the
// time. CPUs at work draw less each the more they are; how much less is the one of a few laws that leaves the least
// over. Found by nonnegative least squares, pulled towards one power for all as weakly as the noise is small: what a
// run cannot tell stays a share of CPU time, and the spread of such powers is in the replicates. Pure; same input,
// same bits. Watts, joules, CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "attribution/cpu/cpu_use.h"
#include "attribution/ledger/time_curve.h"

namespace joulemap::attribution {

// Unknowns, in this order: columns of CpuUse, all others, idling.
struct CpuPowers {
  std::size_t columns = 0;
  std::vector<double> watts;                    // by unknown; of columns: of a CPU alone at work, above idle
  std::vector<bool> regressed;                  // by unknown: from the data; else CPU time, or belief
  std::vector<std::vector<double>> replicates;  // by unknown, then by replicate
  std::vector<double> gains;                    // what the counter may be wrong by as a whole
  double growth = 1;                            // see crowding()
  bool idle_known = false;                      // the machine was seen at rest
  bool fitted = false;                          // else all draw alike, idling included
  std::size_t rows = 0;
  double residual = 0;  // usual size of what a row leaves over, as a share of it

  std::size_t other() const { return columns; }
  std::size_t idle() const { return columns + 1; }
};

// All that is known of a machine's CPUs besides their energy.
struct CpuKnowledge {
  CpuUse use;
  CpuPowers powers;
  TimeCurve other_s;                                      // CPU time of whatever was not captured
  double cpus = std::numeric_limits<double>::infinity();  // that the machine has
  std::vector<std::int64_t> readings_ns = {};             // of the counters: between two of them only the sum is known
  bool estimated = false;                                 // the energy is
};

// `domains`: readings of each counter. Nothing where they are too few.
std::optional<CpuPowers> fit_cpu_powers(const CpuUse& use, const MachineTime& machine,
                                        std::span<const std::vector<EnergyPoint>> domains);

// All draw alike, as far as anybody knows.
CpuPowers alike_cpu_powers(std::size_t columns);
// `gain_spread`: standard deviation of what the counter, or the estimate, is off by as a whole.
void draw_gains(CpuPowers& powers, double gain_spread);

}  // namespace joulemap::attribution
