// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/sensor_model_uncertainty.h"

#include <algorithm>
#include <cstddef>

namespace joulemap::attribution {

std::vector<double> sensor_model_uncertainty(std::span<const AlternativeSensorModel> alternatives, double sd_w) {
  if (alternatives.empty()) return {};
  double weight_sum = 0;
  for (const AlternativeSensorModel& alternative : alternatives) weight_sum += alternative.weight;
  std::vector<double> variances(alternatives.front().watts_by_unknown.size());
  for (std::size_t k = 0; k < variances.size(); ++k) {
    for (const AlternativeSensorModel& alternative : alternatives) {
      const double change = (alternative.watts_by_unknown[k] - alternatives.front().watts_by_unknown[k]) / sd_w;
      variances[k] += alternative.weight / weight_sum * change * change;
    }
  }
  return variances;
}

SensorModelReplicates::SensorModelReplicates(std::span<const AlternativeSensorModel> alternatives,
                                             const SolveFunction& solve) {
  std::vector<double> best_model_w;
  for (const AlternativeSensorModel& alternative : alternatives) {
    std::vector<double> watts = solve(alternative.normal_equations);
    if (best_model_w.empty()) best_model_w = watts;
    for (std::size_t k = 0; k < watts.size(); ++k) watts[k] -= best_model_w[k];
    cumulative_weights_.push_back(alternative.weight + (cumulative_weights_.empty() ? 0 : cumulative_weights_.back()));
    power_changes_w_.push_back(std::move(watts));
  }
}

std::span<const double> SensorModelReplicates::draw_power_change(statistics::Random& random) const {
  if (cumulative_weights_.empty()) return {};
  const double drawn_weight = random.uniform() * cumulative_weights_.back();
  const auto drawn_position =
      std::upper_bound(cumulative_weights_.begin(), cumulative_weights_.end() - 1, drawn_weight);
  return power_changes_w_[static_cast<std::size_t>(drawn_position - cumulative_weights_.begin())];
}

}  // namespace joulemap::attribution
