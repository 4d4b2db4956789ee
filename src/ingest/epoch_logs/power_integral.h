// SPDX-License-Identifier: Apache-2.0
//
// PowerIntegral: energy between any two times of a power log, by the actual sample times. Power is linear between
// samples, constant before the first and after the last. Value type; joules, watts, seconds since the log's first
// sample. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "ingest/power_csv/power_log.h"

namespace joulemap::ingest {

class PowerIntegral {
 public:
  // Takes the valid samples of one channel, which PowerLog has in time order.
  PowerIntegral(const PowerLog& log, std::uint32_t channel);
  bool is_empty() const { return times_s_.empty(); }
  double energy_j(double from_s, double to_s) const;  // seconds since origin_ns(); requires !is_empty()
  double first_power_w() const { return powers_w_.front(); }

  // Time 0 of the integrals of all channels of a log: its first sample, Unix ns; 0 without samples.
  static std::int64_t origin_ns(const PowerLog& log);

 private:
  double cumulative_energy_j(double time_s) const;

  std::vector<double> times_s_;
  std::vector<double> powers_w_;
  std::vector<double> cumulative_energies_j_;  // energy from the first sample up to each sample
};

}  // namespace joulemap::ingest
