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

// Exponent of the smooth maximum of host and GPU time (a p-norm); values between 4 and 10 give nearly the same
// accuracy.
constexpr double kSmoothMaximumExponent = 6;
// If the GPU is busy for less than this fraction of the step, the step is host-bound and its time is the host's time.
constexpr double kMaxHostBoundBusyShare = 0.75;
// Networks whose GPU is busy for more than this fraction, or that were not profiled, get the weight
// kIssueTimeOnlyWeight in the fit of host costs: only their issue time shows the speed of their host.
constexpr double kMaxHostTimedBusyShare = 0.9;
constexpr double kIssueTimeOnlyWeight = 0.3;
// Trees predict medians of skewed errors. For operations outside of the training data, sums of medians are 2 % too low.
constexpr double kMeanOverMedianRatio = 1.02;
// Host time of a step in a loop over the measured issue time, which is the fastest of a few steps.
constexpr double kLoopOverIssueTimeRatio = 1.06;
constexpr double kEnergyScalePriorObservations = 3;

// A network's energy above idle as fractions of its measured energy: predicted_by_group is the prediction from its
// operations, measured the measurement.
struct NetworkEnergyFractions {
  std::vector<double> predicted_by_group;
  double measured_fraction = 0;
};

std::vector<double> fit_energy_scales(std::span<const NetworkEnergyFractions> rows) {
  statistics::NormalEquations sums(kEnergyGroupNames.size());
  for (const NetworkEnergyFractions& row : rows) sums.add_observation(row.predicted_by_group, row.measured_fraction);
  std::vector<statistics::Prior> priors(kEnergyGroupNames.size());
  for (std::size_t index = 0; index < kEnergyGroupNames.size(); ++index) {
    const double mean = sums.total_weight() > 0 ? sums.gram(index, index) / sums.total_weight() : 0;
    priors[index] = {1.0, 1e-12 + kEnergyScalePriorObservations * mean};
  }
  return statistics::nonnegative_least_squares(sums, priors).x;
}

// Counts of work in a network: how often each host cost occurs.
HostCostVector count_host_cost_terms(const NetworkModel& model, const NetworkOperationSums& sums) {
  HostCostVector host_cost_terms{};
  const double python =
      sums.python_call_count > 0 ? sums.python_call_count : model.python_calls_per_operation * sums.call_count;
  const std::array<double, kHostCostTermCount> parts = {sums.call_count, sums.view_count, sums.launch_count_sum, 1,
                                                        python};
  std::ranges::copy(parts, host_cost_terms.begin());
  std::ranges::copy(sums.calls_by_kind, host_cost_terms.begin() + kHostCostTermCount);
  return host_cost_terms;
}

double predicted_host_s(const NetworkModel& model, const NetworkOperationSums& sums) {
  const HostCostVector& costs = sums.training ? model.training_host_costs_s : model.inference_host_costs_s;
  const HostCostVector host_cost_terms = count_host_cost_terms(model, sums);
  return std::inner_product(host_cost_terms.begin(), host_cost_terms.end(), costs.begin(), sums.multi_kernel_host_s);
}

// Host time of a step in seconds on the fastest host, without multi-kernel calls; empty if the measurement does not
// show it.
std::optional<double> observed_host_s(const NetworkObservation& row) {
  const MeasuredNetwork& network = *row.network;
  const bool is_host_bound = network.busy_s > 0 && network.busy_s < kMaxHostBoundBusyShare * network.time_s;
  if (!is_host_bound && network.issue_s <= 0) return std::nullopt;
  // Issuing cannot take longer than the step: a longer issue time was itself disturbed.
  const double host_s =
      is_host_bound ? network.time_s : std::min(network.time_s, kLoopOverIssueTimeRatio * network.issue_s);
  const double single_kernel_host_s = host_s / network.machine.host_factor - row.sums.multi_kernel_host_s;
  return single_kernel_host_s > 0 ? std::optional(single_kernel_host_s) : std::nullopt;
}

HostCostVector fit_host_costs_of_networks(std::span<const NetworkObservation> rows, const NetworkModel& model,
                                          bool training) {
  std::vector<HostObservation> observations;
  for (const NetworkObservation& row : rows) {
    const std::optional<double> host_s = observed_host_s(row);
    if (row.sums.training != training || !host_s) continue;
    const bool is_host_bound =
        row.network->busy_s > 0 && row.network->busy_s < kMaxHostTimedBusyShare * row.network->time_s;
    observations.push_back({count_host_cost_terms(model, row.sums), *host_s, is_host_bound ? 1 : kIssueTimeOnlyWeight});
  }
  return fit_host_costs(observations, prior_host_costs(training));
}

double fit_python_calls_per_operation(std::span<const NetworkObservation> rows, double default_value) {
  std::vector<double> ratios;
  for (const NetworkObservation& row : rows) {
    if (row.sums.python_call_count > 0 && row.sums.call_count > 0 && !row.sums.training)
      ratios.push_back(row.sums.python_call_count / row.sums.call_count);
  }
  return ratios.empty() ? default_value : median_or(ratios, 1.0);
}

void fit_energy_scales_of_networks(std::span<const NetworkObservation> rows, NetworkModel& model) {
  std::vector<NetworkEnergyFractions> shares;
  for (const NetworkObservation& row : rows) {
    const double time_s = row.network->time_s;
    const double energy_j = row.network->energy_j - row.network->machine.idle_offset_w * time_s;
    if (energy_j <= 0) continue;
    NetworkEnergyFractions& share = shares.emplace_back();
    for (const double above_idle_j : row.sums.above_idle_j) share.predicted_by_group.push_back(above_idle_j / energy_j);
    share.measured_fraction = 1 - model.idle_w * time_s / energy_j;
  }
  const std::vector<double> fitted_scales = fit_energy_scales(shares);
  std::copy_n(fitted_scales.begin(), kEnergyGroupNames.size(), model.energy_scales.begin());
}

}  // namespace

std::size_t energy_group_index(const Operation& operation) {
  const std::size_t dtype_index = operation.dtype == Dtype::fp32 ? 0 : operation.dtype == Dtype::tf32 ? 1 : 2;
  switch (operation.kind) {
    case Kind::convolution:
      return dtype_index;
    case Kind::dense:
    case Kind::bmm:
    case Kind::recurrent:
      return 3 + dtype_index;
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

double interval_log_half_width(const NetworkModel& model, bool training, double waiting) {
  const double pass_log_half_width = training ? model.training_log_half_width : model.inference_log_half_width;
  return pass_log_half_width * add_in_quadrature(1.0, model.host_bound_width_factor * waiting);
}

void add_operation(NetworkOperationSums& sums, const NetworkModel& model, const Operation& operation,
                   const OperationEstimate& estimate) {
  const auto count = static_cast<double>(operation.count);
  if (operation.kind == Kind::view) {
    sums.view_count += count;
    return;
  }
  sums.gpu_s += count * estimate.time_s;
  sums.above_idle_j[energy_group_index(operation)] +=
      count * std::max(0.0, estimate.energy_j - model.idle_w * estimate.time_s);
  sums.call_count += count;
  sums.calls_by_kind[static_cast<std::size_t>(operation.kind)] += count;
  sums.launch_count_sum += count * launch_count(model.launches, operation);
  sums.multi_kernel_host_s += count * estimate.host_s;
}

NetworkEstimate estimate_network(const NetworkModel& model, const NetworkOperationSums& sums,
                                 const MachineCorrection& machine) {
  NetworkEstimate estimate;
  const double idle_w = std::max(0.0, model.idle_w + machine.idle_offset_w);
  estimate.gpu_s = sums.gpu_s * model.gpu_time_scale;
  estimate.host_s = predicted_host_s(model, sums) * machine.host_factor;
  const double max_time_s = std::max({estimate.gpu_s, estimate.host_s, 1e-12});
  estimate.time_s = max_time_s * std::pow(std::pow(estimate.gpu_s / max_time_s, kSmoothMaximumExponent) +
                                              std::pow(estimate.host_s / max_time_s, kSmoothMaximumExponent),
                                          1 / kSmoothMaximumExponent);
  const double above_idle_j =
      std::inner_product(sums.above_idle_j.begin(), sums.above_idle_j.end(), model.energy_scales.begin(), 0.0);
  // At the power limit clocks drop until the power fits; the work stays the same.
  if (model.power_limit_w > idle_w) {
    const double power_limited_time_s = above_idle_j / (model.power_limit_w - idle_w);
    estimate.is_power_limited = power_limited_time_s > estimate.time_s;
    estimate.time_s = std::max(estimate.time_s, power_limited_time_s);
  }
  estimate.energy_j = above_idle_j + idle_w * estimate.time_s;
  return estimate;
}

NetworkModel fit_network_model(std::span<const NetworkObservation> rows, const NetworkModel& start) {
  NetworkModel model = start;
  std::vector<double> ratios;
  for (const NetworkObservation& row : rows) {
    if (row.network->busy_s > 0 && row.sums.gpu_s > 0) ratios.push_back(row.network->busy_s / row.sums.gpu_s);
  }
  model.gpu_time_scale = median_or(ratios, 1.0);
  model.python_calls_per_operation = fit_python_calls_per_operation(rows, start.python_calls_per_operation);
  model.inference_host_costs_s = fit_host_costs_of_networks(rows, model, false);
  model.training_host_costs_s = fit_host_costs_of_networks(rows, model, true);
  fit_energy_scales_of_networks(rows, model);
  model.gpu_time_scale *= kMeanOverMedianRatio;
  for (double& scale : model.energy_scales) scale *= kMeanOverMedianRatio;
  return model;
}

}  // namespace joulemap::predict
