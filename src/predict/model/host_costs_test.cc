// SPDX-License-Identifier: Apache-2.0
#include "predict/model/host_costs.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace joulemap::predict {
namespace {

constexpr double kOperationCost_s = 3e-6;
constexpr double kKernelCost_s = 7e-6;
constexpr double kPythonCallCost_s = 0.8e-6;
constexpr double kExtraConvolutionCost_s = 12e-6;
constexpr std::size_t kConvolutionTerm = kHostCostTermCount + static_cast<std::size_t>(Kind::convolution);

HostObservation make_observation(double operations, double convolutions, double kernels, double python) {
  HostObservation row;
  row.work[static_cast<std::size_t>(HostCostTerm::operation)] = operations;
  row.work[static_cast<std::size_t>(HostCostTerm::kernel)] = kernels;
  row.work[static_cast<std::size_t>(HostCostTerm::python)] = python;
  row.work[kConvolutionTerm] = convolutions;
  row.host_s = kOperationCost_s * operations + kExtraConvolutionCost_s * convolutions + kKernelCost_s * kernels +
               kPythonCallCost_s * python;
  return row;
}

std::vector<HostObservation> many_observations() {
  std::vector<HostObservation> rows;
  for (int index = 0; index < 400; ++index) {
    const double operations = 100 + 37 * (index % 11);
    rows.push_back(make_observation(operations, operations * (index % 5) / 8, operations * (1 + 0.2 * (index % 3)),
                                    operations * (2 + index % 7)));
  }
  return rows;
}

double predicted_host_s(const HostCostVector& costs, const HostObservation& row) {
  double sum = 0;
  for (std::size_t index = 0; index < kHostCostCount; ++index) sum += costs[index] * row.work[index];
  return sum;
}

TEST(HostCosts, AConvolutionCostsMoreThanAnotherOperation) {
  const std::vector<HostObservation> rows = many_observations();
  const HostCostVector costs = fit_host_costs(rows, prior_host_costs(false));
  EXPECT_NEAR(costs[kConvolutionTerm], kExtraConvolutionCost_s, 0.15 * kExtraConvolutionCost_s);
  const HostObservation unseen_observation = make_observation(321, 160, 400, 900);
  EXPECT_NEAR(predicted_host_s(costs, unseen_observation), unseen_observation.host_s, 0.03 * unseen_observation.host_s);
}

TEST(HostCosts, AFewRowsOfADisturbedHostHaveLittleWeight) {
  std::vector<HostObservation> rows = many_observations();
  for (std::size_t index = 0; index < rows.size(); index += 12) rows[index].host_s *= 2;
  const HostCostVector costs = fit_host_costs(rows, prior_host_costs(false));
  const HostObservation unseen_observation = make_observation(321, 160, 400, 900);
  EXPECT_NEAR(predicted_host_s(costs, unseen_observation), unseen_observation.host_s, 0.05 * unseen_observation.host_s);
}

TEST(HostCosts, RareOperationsStayNearThePrior) {
  std::vector<HostObservation> rows = many_observations();
  constexpr std::size_t kResizeTerm = kHostCostTermCount + static_cast<std::size_t>(Kind::resize);
  for (std::size_t index = 0; index < rows.size(); ++index) rows[index].host_s *= index % 2 == 0 ? 1.08 : 0.93;
  for (const std::size_t index : {10U, 110U, 210U}) {
    rows[index].work[kResizeTerm] = 3;
    rows[index].host_s *= 1.1;  // about as much as other rows deviate
  }
  const HostCostVector prior = prior_host_costs(false);
  const HostCostVector costs = fit_host_costs(rows, prior);
  EXPECT_LT(costs[kResizeTerm], 8 * prior[kResizeTerm]);
}

TEST(HostCosts, HostCostsWithoutRowsEqualThePrior) {
  const HostCostVector prior = prior_host_costs(true);
  const HostCostVector costs = fit_host_costs({}, prior);
  for (std::size_t index = 0; index < kHostCostCount; ++index) EXPECT_NEAR(costs[index], prior[index], 1e-12);
}

TEST(HostCosts, EachCostHasAUniqueName) {
  std::set<std::string> names;
  for (std::size_t index = 0; index < kHostCostCount; ++index) names.insert(host_cost_name(index));
  EXPECT_EQ(names.size(), kHostCostCount);
  EXPECT_TRUE(names.contains("more_for_convolution"));
}

}  // namespace
}  // namespace joulemap::predict
