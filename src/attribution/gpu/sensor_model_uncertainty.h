// SPDX-License-Identifier: Apache-2.0
//
// Sensor-model uncertainty: how much the powers depend on the lag and the time constant of the sensor
// (power_evidence.h, AlternativeSensorModel). A varied run identifies both. Identical repeating steps hardly do, and
// then each alternative sensor model gives different powers. Pure; watts.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "attribution/gpu/power_evidence.h"
#include "statistics/nonnegative_least_squares.h"
#include "statistics/random.h"

namespace joulemap::attribution {

// By unknown: variance of its power over the alternative sensor models, as a fraction of the prior variance sd_w^2.
// Empty without alternatives.
std::vector<double> sensor_model_uncertainty(std::span<const AlternativeSensorModel> alternatives, double sd_w);

// Changes of the fitted powers under each alternative sensor model.
class SensorModelReplicates {
 public:
  using SolveFunction = std::function<std::vector<double>(const statistics::NormalEquations&)>;
  SensorModelReplicates(std::span<const AlternativeSensorModel> alternatives, const SolveFunction& solve);

  // By unknown: change in W for one alternative, drawn by weight; empty without alternatives.
  std::span<const double> draw_power_change(statistics::Random& random) const;

 private:
  std::vector<double> cumulative_weights_;
  std::vector<std::vector<double>> power_changes_w_;
};

}  // namespace joulemap::attribution
