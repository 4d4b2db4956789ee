// SPDX-License-Identifier: Apache-2.0
#include "predict/network_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "statistics/nonnegative_least_squares.h"

namespace joulemap::predict {
namespace {

// How sharply the slower of host and GPU sets the time; between 4 and 10 it makes no difference.
constexpr double kSharpness = 6;
// Below this share of the time the GPU waits for the host, which is then what the time tells of.
constexpr double kHostBound = 0.75;
// Trees tell middles of errors that are skewed; of operations that they did not learn from, sums come out so much lower.
constexpr double kMeanOverMiddle = 1.03;
constexpr int kRounds = 6;
constexpr double kLeastFactor = 0.5;
constexpr double kMostFactor = 2;
// Seconds of a call, a view, a kernel, and once, before any network is seen.
constexpr HostCosts kInferenceBelief = {14e-6, 2e-6, 6e-6, 50e-6};
constexpr HostCosts kTrainingBelief = {24e-6, 6e-6, 8e-6, 600e-6};
constexpr double kRowsOfBelief = 3;

double median(std::vector<double> values) {
  if (values.empty()) return 1;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<double> fit_shares(std::span<const std::vector<double>> shares, std::span<const double> beliefs) {
  statistics::GramSums sums(beliefs.size());
  for (const std::vector<double>& row : shares) sums.add_row(row, 1.0);
  std::vector<statistics::Belief> pulled(beliefs.size());
  for (std::size_t index = 0; index < beliefs.size(); ++index) {
    const double mean = sums.rows() > 0 ? sums.gram(index, index) / sums.rows() : 0;
    pulled[index] = {beliefs[index], 1e-12 + kRowsOfBelief * mean};
  }
  return statistics::nonnegative_least_squares(sums, pulled).x;
}

double host_seconds(const NetworkModel& model, const NetworkSums& sums) {
  const HostCosts& costs = sums.training ? model.training : model.inference;
  return costs[0] * sums.calls + costs[1] * sums.views + costs[2] * sums.launches + costs[3] + sums.steps_s;
}

bool is_host_bound(const NetworkRow& row, const NetworkModel& model) {
  const double busy_s = row.network->busy_s > 0 ? row.network->busy_s : row.sums.gpu_s * model.gpu_time_scale;
  return busy_s < kHostBound * row.network->time_s;
}

HostCosts fit_host(std::span<const NetworkRow> rows, const NetworkModel& model, bool training) {
  const HostCosts& belief = training ? kTrainingBelief : kInferenceBelief;
  std::vector<std::vector<double>> shares;
  for (const NetworkRow& row : rows) {
    if (row.sums.training != training || !is_host_bound(row, model)) continue;
    const double time_s = row.network->time_s / row.host_factor - row.sums.steps_s;
    if (!(time_s > 0)) continue;
    const NetworkSums& sums = row.sums;
    shares.push_back({sums.calls * belief[0] / time_s, sums.views * belief[1] / time_s,
                      sums.launches * belief[2] / time_s, belief[3] / time_s});
  }
  const std::array<double, 4> ones = {1, 1, 1, 1};
  const std::vector<double> found = fit_shares(shares, ones);
  HostCosts costs{};
  for (std::size_t index = 0; index < costs.size(); ++index) costs[index] = found[index] * belief[index];
  return costs;
}

// Of each run the middle of how much longer its host-bound networks took; together they are 1.
void find_host_factors(std::span<NetworkRow> rows, const NetworkModel& model) {
  std::map<std::string, std::vector<double>, std::less<>> ratios;
  for (const NetworkRow& row : rows) {
    if (is_host_bound(row, model))
      ratios[row.network->slice].push_back(row.network->time_s / host_seconds(model, row.sums));
  }
  std::vector<double> all;
  for (const auto& [slice, some] : ratios) all.insert(all.end(), some.begin(), some.end());
  const double usual = median(all);
  for (NetworkRow& row : rows) {
    const auto at = ratios.find(row.network->slice);
    if (at == ratios.end()) continue;
    row.host_factor = std::clamp(median(at->second) / usual, kLeastFactor, kMostFactor);
  }
}

void fit_energies_of(std::span<const NetworkRow> rows, NetworkModel& model) {
  std::vector<std::vector<double>> shares;
  for (const NetworkRow& row : rows) {
    const double energy_j = row.network->energy_j;
    shares.push_back(
        {row.sums.products_j / energy_j, row.sums.others_j / energy_j, model.idle_w * row.network->time_s / energy_j});
  }
  const std::array<double, 3> ones = {1, 1, 1};
  const std::vector<double> found = fit_shares(shares, ones);
  model.products_scale = found[0];
  model.others_scale = found[1];
  model.idle_w *= found[2];
}

}  // namespace

double interval_width(const NetworkModel& model, bool training, double waiting) {
  const double own = training ? model.training_width : model.inference_width;
  return own * std::hypot(1.0, model.host_width * waiting);
}

double launches_of(const NetworkModel& model, const Operation& operation) {
  if (operation.kind == Kind::view) return 0;
  for (const std::string& group : groups_of(operation)) {
    if (const auto at = model.launches.find(group); at != model.launches.end()) return at->second;
  }
  return 1;
}

void add_operation(NetworkSums& sums, const NetworkModel& model, const Operation& operation,
                   const OperationEstimate& guess) {
  const auto count = static_cast<double>(operation.count);
  if (operation.kind == Kind::view) {
    sums.views += count;
    return;
  }
  sums.gpu_s += count * guess.time_s;
  const double above_j = std::max(0.0, guess.energy_j - model.idle_w * guess.time_s);
  (is_product(operation.kind) ? sums.products_j : sums.others_j) += count * above_j;
  sums.calls += count;
  sums.launches += count * launches_of(model, operation);
  sums.steps_s += count * guess.host_s;
}

NetworkEstimate estimate_network(const NetworkModel& model, const NetworkSums& sums, double host_factor) {
  NetworkEstimate guess;
  guess.gpu_s = sums.gpu_s * model.gpu_time_scale;
  guess.host_s = host_seconds(model, sums) * host_factor;
  const double most = std::max({guess.gpu_s, guess.host_s, 1e-12});
  guess.time_s = most * std::pow(std::pow(guess.gpu_s / most, kSharpness) + std::pow(guess.host_s / most, kSharpness),
                                 1 / kSharpness);
  guess.energy_j =
      model.products_scale * sums.products_j + model.others_scale * sums.others_j + model.idle_w * guess.time_s;
  return guess;
}

NetworkModel fit_network_model(std::span<NetworkRow> rows, const NetworkModel& start) {
  NetworkModel model = start;
  std::vector<double> ratios;
  for (const NetworkRow& row : rows) {
    if (row.network->busy_s > 0 && row.sums.gpu_s > 0) ratios.push_back(row.network->busy_s / row.sums.gpu_s);
  }
  model.gpu_time_scale = median(ratios);
  model.inference = kInferenceBelief;
  model.training = kTrainingBelief;
  for (int round = 0; round < kRounds; ++round) {
    find_host_factors(rows, model);
    model.inference = fit_host(rows, model, false);
    model.training = fit_host(rows, model, true);
  }
  fit_energies_of(rows, model);
  for (double* scale : {&model.gpu_time_scale, &model.products_scale, &model.others_scale}) *scale *= kMeanOverMiddle;
  return model;
}

}  // namespace joulemap::predict
