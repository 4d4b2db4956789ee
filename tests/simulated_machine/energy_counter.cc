// SPDX-License-Identifier: Apache-2.0
#include "energy_counter.h"

#include <cmath>

#include "base/check.h"

namespace joulemap::simulated {
namespace {

std::uint64_t quantise_uj(double true_energy_j) {
  return static_cast<std::uint64_t>(std::floor(true_energy_j * 1e6 / kQuantumUj) * kQuantumUj);
}

}  // namespace

EnergyCounter::EnergyCounter(std::uint64_t start_uj, std::uint64_t wrap_uj) : wrap_uj_(wrap_uj), offset_uj_(0) {
  JOULEMAP_CHECK(wrap_uj > 0, "a counter that wraps at nothing");
  offset_uj_ = start_uj % wrap_uj;
}

std::uint64_t EnergyCounter::reading_uj(double true_energy_j) const {
  return (quantise_uj(true_energy_j) % wrap_uj_ + offset_uj_) % wrap_uj_;
}

void EnergyCounter::restart_at(double true_energy_j) {
  offset_uj_ = (wrap_uj_ - quantise_uj(true_energy_j) % wrap_uj_) % wrap_uj_;
}

void EnergyCounter::step_back(std::uint64_t step_uj) {
  offset_uj_ = (offset_uj_ + wrap_uj_ - step_uj % wrap_uj_) % wrap_uj_;
}

}  // namespace joulemap::simulated
