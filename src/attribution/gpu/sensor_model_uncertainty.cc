// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/sensor_model_uncertainty.h"

#include <algorithm>
#include <cstddef>

namespace joulemap::attribution {

std::vector<double> sensor_model_uncertainty(std::span<const AlternativeSensorModel> others, double spread_w) {
  if (others.empty()) return {};
  double all = 0;
  for (const AlternativeSensorModel& other : others) all += other.weight;
  std::vector<double> doubts(others.front().watts.size());
  for (std::size_t k = 0; k < doubts.size(); ++k) {
    for (const AlternativeSensorModel& other : others) {
      const double change = (other.watts[k] - others.front().watts[k]) / spread_w;
      doubts[k] += other.weight / all * change * change;
    }
  }
  return doubts;
}

SensorModelChanges::SensorModelChanges(std::span<const AlternativeSensorModel> others, const Solve& solve) {
  std::vector<double> best_w;
  for (const AlternativeSensorModel& other : others) {
    std::vector<double> watts = solve(other.sums);
    if (best_w.empty()) best_w = watts;
    for (std::size_t k = 0; k < watts.size(); ++k) watts[k] -= best_w[k];
    until_.push_back(other.weight + (until_.empty() ? 0 : until_.back()));
    changes_w_.push_back(std::move(watts));
  }
}

std::span<const double> SensorModelChanges::draw(statistics::Random& random) const {
  if (until_.empty()) return {};
  const double chosen = random.uniform() * until_.back();
  const auto at = std::upper_bound(until_.begin(), until_.end() - 1, chosen);
  return changes_w_[static_cast<std::size_t>(at - until_.begin())];
}

}  // namespace joulemap::attribution
