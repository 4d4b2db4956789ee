// SPDX-License-Identifier: Apache-2.0
//
// What is left open because a sensor may be a little otherwise than it was found to be: another lag, another memory
// (power_evidence.h, OtherSensing). A run that varies tells both; equal steps that repeat hardly do, and then each of them
// gives other powers. Pure; watts.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "attribution/gpu/power_evidence.h"
#include "statistics/nonnegative_least_squares.h"
#include "statistics/random.h"

namespace joulemap::attribution {

// By unknown: the variance of its power among what the sensor may be, as a share of that of a belief. Empty where the
// sensor is known.
std::vector<double> sensing_doubts(std::span<const OtherSensing> others, double spread_w);

// What each of them changes in the powers that were found.
class SensingChanges {
 public:
  using Solve = std::function<std::vector<double>(const statistics::GramSums&)>;
  SensingChanges(std::span<const OtherSensing> others, const Solve& solve);

  // By unknown, of one of them by chance; empty where the sensor is known.
  std::span<const double> draw(statistics::Random& random) const;

 private:
  std::vector<double> until_;  // sums of weights
  std::vector<std::vector<double>> changes_w_;
};

}  // namespace joulemap::attribution
