// SPDX-License-Identifier: Apache-2.0
#include "predict/model/network_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/median.h"
#include "base/quadrature.h"
#include "statistics/nonnegative_least_squares.h"

namespace joulemap::predict {
namespace {

// Exponent of the smooth maximum of host and GPU time; values between 4 and 10 give the same result.
constexpr double kSharpness = 6;
// If the GPU is busy for less than this fraction of the step, the step is host-bound and its time is the host's time.
constexpr double kHostBound = 0.75;
// Rows in which the GPU is busy for more than this fraction, or that were not profiled, get the weight kOfOthers: only
// the time to issue a step shows their host's speed.
constexpr double kBusy = 0.9;
constexpr double kOfOthers = 0.3;
// Trees predict medians of skewed errors; for operations outside of the training data, sums come out 2 % too low.
constexpr double kMeanOverMedian = 1.02;
// A host that launches continuously takes 6 % longer per call than the fastest of a few calls.
constexpr double kSteadyOverIssue = 1.06;
constexpr double kObservationsOfPrior = 3;

// A network's energy above idle, as fractions of its energy.
struct EnergyShares {
  std::vector<double> by_group;
  double measured = 0;
};

std::vector<double> fit_energy_scales(std::span<const EnergyShares> rows) {
  statistics::GramSums sums(kEnergyGroups.size());
  for (const EnergyShares& row : rows) sums.add_row(row.by_group, row.measured);
  std::vector<statistics::Prior> priors(kEnergyGroups.size());
  for (std::size_t index = 0; index < kEnergyGroups.size(); ++index) {
    const double mean = sums.rows() > 0 ? sums.gram(index, index) / sums.rows() : 0;
    priors[index] = {1.0, 1e-12 + kObservationsOfPrior * mean};
  }
  return statistics::nonnegative_least_squares(sums, priors).x;
}

// Count of each cost item in the network.
HostNumbers host_work(const NetworkModel& model, const NetworkSums& sums) {
  HostNumbers work{};
  const double python = sums.python > 0 ? sums.python : model.python_per_call * sums.calls;
  const std::array<double, kHostParts> parts = {sums.calls, sums.views, sums.launches, 1, python};
  std::ranges::copy(parts, work.begin());
  std::ranges::copy(sums.by_kind, work.begin() + kHostParts);
  return work;
}

double host_seconds(const NetworkModel& model, const NetworkSums& sums) {
  const HostNumbers& costs = sums.training ? model.training : model.inference;
  const HostNumbers work = host_work(model, sums);
  return std::inner_product(work.begin(), work.end(), costs.begin(), sums.steps_s);
}

// Host time of a step, s; empty if the measurement does not show it.
std::optional<double> observed_host_s(const NetworkRow& row) {
  const MeasuredNetwork& network = *row.network;
  const bool waited = network.busy_s > 0 && network.busy_s < kHostBound * network.time_s;
  if (!waited && network.issue_s <= 0) return std::nullopt;
  // Issuing cannot take longer than the step: a longer issue time was itself disturbed.
  const double host_s = waited ? network.time_s : std::min(network.time_s, kSteadyOverIssue * network.issue_s);
  const double own_s = host_s / network.machine.host_factor - row.sums.steps_s;
  return own_s > 0 ? std::optional(own_s) : std::nullopt;
}

HostNumbers fit_host(std::span<const NetworkRow> rows, const NetworkModel& model, bool training) {
  std::vector<HostRow> told;
  for (const NetworkRow& row : rows) {
    const std::optional<double> host_s = observed_host_s(row);
    if (row.sums.training != training || !host_s) continue;
    const bool waited = row.network->busy_s > 0 && row.network->busy_s < kBusy * row.network->time_s;
    told.push_back({host_work(model, row.sums), *host_s, waited ? 1 : kOfOthers});
  }
  return fit_host_costs(told, prior_host_costs(training));
}

double python_per_call_of(std::span<const NetworkRow> rows, double otherwise) {
  std::vector<double> ratios;
  for (const NetworkRow& row : rows) {
    if (row.sums.python > 0 && row.sums.calls > 0 && !row.sums.training)
      ratios.push_back(row.sums.python / row.sums.calls);
  }
  return ratios.empty() ? otherwise : median_or(ratios, 1.0);
}

void fit_energies_of(std::span<const NetworkRow> rows, NetworkModel& model) {
  std::vector<EnergyShares> shares;
  for (const NetworkRow& row : rows) {
    const double time_s = row.network->time_s;
    const double energy_j = row.network->energy_j - row.network->machine.idle_offset_w * time_s;
    if (energy_j <= 0) continue;
    EnergyShares& share = shares.emplace_back();
    for (const double above_j : row.sums.above_j) share.by_group.push_back(above_j / energy_j);
    share.measured = 1 - model.idle_w * time_s / energy_j;
  }
  const std::vector<double> found = fit_energy_scales(shares);
  std::copy_n(found.begin(), kEnergyGroups.size(), model.energy_scales.begin());
}

}  // namespace

std::size_t energy_group_of(const Operation& operation) {
  const std::size_t by_type = operation.dtype == Dtype::fp32 ? 0 : operation.dtype == Dtype::tf32 ? 1 : 2;
  switch (operation.kind) {
    case Kind::convolution:
      return by_type;
    case Kind::dense:
    case Kind::bmm:
    case Kind::recurrent:
      return 3 + by_type;
    case Kind::attention:
      return 6;
    case Kind::normalization:
      return 7;
    case Kind::activation:
    case Kind::add:
    case Kind::multiply:
    case Kind::dropout:
    case Kind::rescaling:
    case Kind::cast:
      return 8;
    case Kind::optimizer:
      return 10;
    default:
      return 9;
  }
}

double interval_width(const NetworkModel& model, bool training, double waiting) {
  const double own = training ? model.training_width : model.inference_width;
  return own * in_quadrature(1.0, model.host_width * waiting);
}

void add_operation(NetworkSums& sums, const NetworkModel& model, const Operation& operation,
                   const OperationEstimate& guess) {
  const auto count = static_cast<double>(operation.count);
  if (operation.kind == Kind::view) {
    sums.views += count;
    return;
  }
  sums.gpu_s += count * guess.time_s;
  sums.above_j[energy_group_of(operation)] += count * std::max(0.0, guess.energy_j - model.idle_w * guess.time_s);
  sums.calls += count;
  sums.by_kind[static_cast<std::size_t>(operation.kind)] += count;
  sums.launches += count * launches_of(model.launches, operation);
  sums.steps_s += count * guess.host_s;
}

NetworkEstimate estimate_network(const NetworkModel& model, const NetworkSums& sums, const Machine& machine) {
  NetworkEstimate guess;
  const double idle_w = std::max(0.0, model.idle_w + machine.idle_offset_w);
  guess.gpu_s = sums.gpu_s * model.gpu_time_scale;
  guess.host_s = host_seconds(model, sums) * machine.host_factor;
  const double most = std::max({guess.gpu_s, guess.host_s, 1e-12});
  guess.time_s = most * std::pow(std::pow(guess.gpu_s / most, kSharpness) + std::pow(guess.host_s / most, kSharpness),
                                 1 / kSharpness);
  const double above_j = std::inner_product(sums.above_j.begin(), sums.above_j.end(), model.energy_scales.begin(), 0.0);
  // At the power limit clocks drop until the power fits; the work stays the same.
  if (model.power_limit_w > idle_w) guess.time_s = std::max(guess.time_s, above_j / (model.power_limit_w - idle_w));
  guess.energy_j = above_j + idle_w * guess.time_s;
  return guess;
}

NetworkModel fit_network_model(std::span<const NetworkRow> rows, const NetworkModel& start) {
  NetworkModel model = start;
  std::vector<double> ratios;
  for (const NetworkRow& row : rows) {
    if (row.network->busy_s > 0 && row.sums.gpu_s > 0) ratios.push_back(row.network->busy_s / row.sums.gpu_s);
  }
  model.gpu_time_scale = median_or(ratios, 1.0);
  model.python_per_call = python_per_call_of(rows, start.python_per_call);
  model.inference = fit_host(rows, model, false);
  model.training = fit_host(rows, model, true);
  fit_energies_of(rows, model);
  model.gpu_time_scale *= kMeanOverMedian;
  for (double& scale : model.energy_scales) scale *= kMeanOverMedian;
  return model;
}

}  // namespace joulemap::predict
