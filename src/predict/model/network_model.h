// SPDX-License-Identifier: Apache-2.0
//
// From operations to the whole network: the GPU computes while the host launches, and the slower of the two determines
// the time. Energy is the sum of the operations' energy above idle plus idle power over the whole time. Values; queries
// are pure.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/fit/measured_operations.h"
#include "predict/model/host_costs.h"
#include "predict/model/launch_counts.h"
#include "predict/model/operation_model.h"

namespace joulemap::predict {

// Groups of operations whose energy inside networks differs from that in isolation by a common factor: the data differ
// (after a ReLU half of the numbers are zero), and so do the operations around them.
inline constexpr std::array<std::string_view, 11> kEnergyGroupNames = {
    "convolution-fp32", "convolution-tf32", "convolution-half", "product-fp32", "product-tf32", "product-half",
    "attention",        "normalization",    "elementwise",      "movement",     "optimizer"};
using ValuePerEnergyGroup = std::array<double, kEnergyGroupNames.size()>;
std::size_t energy_group_index(const Operation& operation);

// Sums over the operations of a network.
struct NetworkOperationSums {
  double gpu_s = 0;                    // GPU time, s, sum over all operations
  ValuePerEnergyGroup above_idle_j{};  // energy above idle, J
  double call_count = 0;               // operations that launch a kernel
  std::array<double, kOperationKindCount> calls_by_kind{};
  double view_count = 0;           // operations that launch nothing and cost the host a little
  double launch_count_sum = 0;     // number of kernels
  double multi_kernel_host_s = 0;  // host s of calls that launch many kernels: optimizer steps, recurrent layers
  double python_call_count = 0;    // number of calls of Python functions; 0 if the graph has no count
  bool training = false;
};

// Differences between machines with the same GPU.
struct MachineCorrection {
  double host_factor = 1;    // host slowdown relative to the fastest measured host
  double idle_offset_w = 0;  // idle power minus the mean of the measured GPUs, W
};

struct NetworkEstimate {
  double time_s = 0;
  double gpu_s = 0;   // GPU busy time at full clocks, s
  double host_s = 0;  // host time to launch everything, s
  double energy_j = 0;
  bool is_power_limited = false;  // the power limit, not work or launches, determines time_s
};

struct NetworkModel {
  // Power with clocks up and nothing running, W; the same value that splits the energies of operations
  // (Datasheet::idle_w). Fitting does not change it, so that fit and prediction split an energy in the same way.
  double idle_w = 0;
  double power_limit_w = 0;                                               // 0: unknown
  ValuePerEnergyGroup energy_scales = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};  // energy above idle: in networks / isolated
  double gpu_time_scale = 1;
  HostCostVector inference_host_costs_s = prior_host_costs(false);  // s
  HostCostVector training_host_costs_s = prior_host_costs(true);
  double python_calls_per_operation = 4;  // Python calls per operation, if the graph has no count
  LaunchCounts launches;
  // Widths of intervals, natural logarithms: 90 % of networks of held-out families lie within
  // exp(+-interval_log_half_width()).
  double inference_log_half_width = 0.35;
  double training_log_half_width = 0.35;
  double host_bound_width_factor = 2.5;  // f in width x sqrt(1 + (f x fraction of time waiting)^2)
  double layer_log_half_width = 0.7;
};

// Half width of an interval as a natural logarithm. `waiting` is the fraction of time that the GPU waits for the host.
double interval_log_half_width(const NetworkModel& model, bool training, double waiting);

NetworkEstimate estimate_network(const NetworkModel& model, const NetworkOperationSums& sums,
                                 const MachineCorrection& machine);

void add_operation(NetworkOperationSums& sums, const NetworkModel& model, const Operation& operation,
                   const OperationEstimate& estimate);

struct MeasuredNetwork {
  std::string name;
  std::string family;
  std::string setting;  // "name|batch|size|dtype|pass", also the key in tables of predictions
  bool training = false;
  double time_s = 0;
  double energy_j = 0;
  double busy_s = 0;   // GPU busy time, s; 0 if not profiled
  double issue_s = 0;  // host time to issue a step without waiting, s; 0 if unknown
  MachineCorrection machine;
  double idle_w = 0;                                       // idle power of its GPU, W, 0 if unknown
  double python_call_count = 0;                            // calls of Python functions, 0 if unknown
  std::vector<std::pair<std::size_t, double>> operations;  // indices into NetworkTable::operations, and counts
};
struct NetworkTable {
  std::vector<Operation> operations;
  std::vector<MeasuredNetwork> networks;
  // Settings that were excluded because other work on the host disturbed them or may have.
  std::vector<std::string> disturbed_settings;
  // Settings that were excluded because they contain operations of unknown kind.
  std::vector<std::string> excluded_settings;
  double fastest_launch_s = 0;  // launch time of the fastest host, s, the reference of host factors; 0 if unknown
};
struct NetworkCsvTexts {
  std::string_view networks;    // networks.csv
  std::string_view busy;        // busy.csv, may be empty
  std::string_view operations;  // of data/networks
  std::string_view settings;    // of data/networks
};
// `fastest_launch_s`: that of the networks that the model was fitted to, if `texts` contain other networks; 0: the
// fastest of `texts`.
Result<NetworkTable> parse_measured_networks(const NetworkCsvTexts& texts, double fastest_launch_s = 0);

// Relative standard deviation of repeated measurements of the same setting on an undisturbed host.
Result<NoiseFloor> compute_network_noise_floor(std::string_view networks, std::string_view busy);

struct NetworkObservation {
  const MeasuredNetwork* network = nullptr;
  NetworkOperationSums sums;
};
NetworkModel fit_network_model(std::span<const NetworkObservation> rows, const NetworkModel& start);

}  // namespace joulemap::predict
