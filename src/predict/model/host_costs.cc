// SPDX-License-Identifier: Apache-2.0
#include "predict/model/host_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "statistics/huber.h"
#include "statistics/nonnegative_least_squares.h"

namespace joulemap::predict {
namespace {

constexpr std::array<std::string_view, kHostCostTermCount> kHostCostNames = {"operation", "view", "kernel", "once",
                                                                             "python"};
constexpr std::array<double, kHostCostTermCount> kPriorInferenceCosts_s = {1.5e-6, 2e-6, 7.5e-6, 20e-6, 1e-6};
constexpr std::array<double, kHostCostTermCount> kPriorTrainingCosts_s = {9e-6, 5e-6, 8e-6, 400e-6, 2e-6};
constexpr double kPriorExtraCostOfKind_s = 1e-6;
constexpr double kPriorExtraCostOfConvolution_s = 5e-6;
constexpr double kHostPriorObservations = 10;
// Precision of the prior if a cost contributes nothing: measurements have an error of 10 %, and costs may be five times
// the prior.
constexpr double kMinHostPriorPrecision = (0.1 / 5) * (0.1 / 5);
// Relative residual above which Huber weights fall below 1, and the rounds of reweighting.
constexpr double kHostHuberThreshold = 0.1;
constexpr int kHostReweightingRounds = 5;

std::vector<double> fit_weighted_host_costs(std::span<const std::vector<double>> shares,
                                            std::span<const double> weights) {
  statistics::NormalEquations sums(kHostCostCount);
  for (std::size_t row = 0; row < shares.size(); ++row) sums.add_observation(shares[row], 1.0, weights[row]);
  std::vector<statistics::Prior> priors(kHostCostCount);
  for (std::size_t index = 0; index < kHostCostCount; ++index) {
    const double mean = shares.empty() ? 0 : sums.gram(index, index) / static_cast<double>(shares.size());
    priors[index] = {1, kMinHostPriorPrecision + kHostPriorObservations * mean};
  }
  return statistics::nonnegative_least_squares(sums, priors).x;
}

}  // namespace

std::string host_cost_name(std::size_t index) {
  if (index < kHostCostTermCount) return std::string(kHostCostNames.at(index));
  return fmt::format("more_for_{}", name_of(static_cast<Kind>(index - kHostCostTermCount)));
}

HostCostVector prior_host_costs(bool training) {
  HostCostVector costs;
  costs.fill((training ? 2 : 1) * kPriorExtraCostOfKind_s);
  std::ranges::copy(training ? kPriorTrainingCosts_s : kPriorInferenceCosts_s, costs.begin());
  costs[kHostCostTermCount + static_cast<std::size_t>(Kind::convolution)] = kPriorExtraCostOfConvolution_s;
  // Views have a cost of their own (HostCostTerm::view), so their kind adds nothing.
  costs[kHostCostTermCount + static_cast<std::size_t>(Kind::view)] = 0;
  return costs;
}

HostCostVector fit_host_costs(std::span<const HostObservation> rows, const HostCostVector& prior) {
  std::vector<std::vector<double>> shares;
  std::vector<double> weights;
  for (const HostObservation& row : rows) {
    std::vector<double>& share = shares.emplace_back();
    for (std::size_t index = 0; index < kHostCostCount; ++index)
      share.push_back(row.work[index] * prior[index] / row.host_s);
    weights.push_back(row.weight);
  }
  std::vector<double> relative_costs;
  for (int round = 0; round < kHostReweightingRounds; ++round) {
    relative_costs = fit_weighted_host_costs(shares, weights);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      double sum = -1;
      for (std::size_t index = 0; index < kHostCostCount; ++index) sum += shares[row][index] * relative_costs[index];
      weights[row] = rows[row].weight * statistics::huber_weight(sum, kHostHuberThreshold);
    }
  }
  HostCostVector costs{};
  for (std::size_t index = 0; index < kHostCostCount; ++index) costs[index] = relative_costs[index] * prior[index];
  return costs;
}

}  // namespace joulemap::predict
