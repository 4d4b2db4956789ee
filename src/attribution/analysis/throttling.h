// SPDX-License-Identifier: Apache-2.0
//
// Throttling: how often a GPU said that something holds its clocks back, from readings of NVML's set of reasons. What
// kernels draw then is not what they draw at full speed, so a report says so. Plain data; pure.
#pragma once

#include <cstdint>
#include <string>

#include "model/diagnostics.h"

namespace joulemap::attribution {

class Throttling {
 public:
  void add(std::uint64_t reasons);
  // Share of the readings, 0 .. 1.
  double power_limited() const;
  // By a power limit, heat or its hardware, often enough to be worth telling.
  bool held_back() const;
  // Nothing where it hardly ever happened.
  void describe(const std::string& domain, Diagnostics& diagnostics) const;

 private:
  bool is_often(std::uint64_t count) const;

  std::uint64_t readings_ = 0;
  std::uint64_t at_power_limit_ = 0;
  std::uint64_t slowed_ = 0;  // by heat, or by the hardware's own brakes
};

}  // namespace joulemap::attribution
