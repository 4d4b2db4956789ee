// SPDX-License-Identifier: Apache-2.0
//
// EnergyCounter: converts a true energy to the value of a RAPL counter. It counts in quanta of 61.035 uJ, does not
// start at zero, wraps at a maximum, and can inject faults. Pure.
#pragma once

#include <cstdint>

namespace joulemap::simulated {

inline constexpr double kQuantumUj = 61.035;

class EnergyCounter {
 public:
  // wrap_uj is at least 1; readings are 0 to wrap_uj - 1.
  EnergyCounter(std::uint64_t start_uj, std::uint64_t wrap_uj);

  std::uint64_t reading_uj(double true_energy_j) const;

  // Faults: the counter restarts from zero at this true energy, or is lower by this much from now on.
  void restart_at(double true_energy_j);
  void step_back(std::uint64_t step_uj);

 private:
  std::uint64_t wrap_uj_;
  std::uint64_t offset_uj_;  // below wrap_uj_
};

}  // namespace joulemap::simulated
