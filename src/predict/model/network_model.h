// SPDX-License-Identifier: Apache-2.0
//
// From operations to the whole network: the GPU computes while the host launches, and whoever is slower sets the time.
// What the operations draw above rest adds up; at rest the GPU draws for the whole time. Values; asking is pure.
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
#include "predict/model/launches.h"
#include "predict/model/operation_model.h"

namespace joulemap::predict {

// Operations that draw more or less in networks than alone by the same factor: data differ (after a ReLU half of the
// numbers are zero) and so do neighbours.
inline constexpr std::array<std::string_view, 11> kEnergyGroups = {
    "convolution-fp32", "convolution-tf32", "convolution-half", "product-fp32", "product-tf32", "product-half",
    "attention",        "normalization",    "elementwise",      "movement",     "optimizer"};
using GroupNumbers = std::array<double, kEnergyGroups.size()>;
std::size_t energy_group_of(const Operation& operation);

// What is added up over the operations of a network.
struct NetworkSums {
  double gpu_s = 0;        // of all operations
  GroupNumbers above_j{};  // above rest
  double calls = 0;        // operations that launch something
  std::array<double, kKindCount> by_kind{};
  double views = 0;     // that launch nothing, and cost the host a little
  double launches = 0;  // kernels
  double steps_s = 0;   // of the host for calls that launch many kernels: optimizers' steps, recurrent layers
  double python = 0;    // calls of Python functions; 0 where the graph does not tell
  bool training = false;
};

// What machines with the same GPU differ by.
struct Machine {
  double host_factor = 1;    // how much slower its host is than the fastest of the measurements
  double idle_offset_w = 0;  // what its GPU draws at rest beyond the mean of those measured
};

struct NetworkEstimate {
  double time_s = 0;
  double gpu_s = 0;   // that the GPU is busy
  double host_s = 0;  // that the host needs to launch everything
  double energy_j = 0;
};

struct NetworkModel {
  // With clocks up, nothing running: the one that energies of operations are told for (Datasheet::idle_w). Fitting leaves
  // it alone, so that what is fitted and what is predicted split an energy in the same way.
  double idle_w = 0;
  double power_limit_w = 0;                                        // 0: none is known
  GroupNumbers energy_scales = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};  // above rest in networks, beside operations alone
  double gpu_time_scale = 1;
  HostNumbers inference = believed_host_costs(false);  // seconds
  HostNumbers training = believed_host_costs(true);
  double python_per_call = 4;  // Python functions for each operation, where a graph does not tell
  Launches launches;
  // Intervals: 90 % of networks of families that were left out lie within exp(+-width) (interval_width).
  double inference_width = 0.35;
  double training_width = 0.35;
  double host_width = 2.5;  // times those, where the GPU only waits for the host
  double layer_width = 0.7;
};

// Half of an interval, in logarithms; `waiting` is the share of the time in which the GPU waits for the host.
double interval_width(const NetworkModel& model, bool training, double waiting);

NetworkEstimate estimate_network(const NetworkModel& model, const NetworkSums& sums, const Machine& machine);

void add_operation(NetworkSums& sums, const NetworkModel& model, const Operation& operation,
                   const OperationEstimate& guess);

struct MeasuredNetwork {
  std::string name;
  std::string family;
  std::string setting;  // "name|batch|size|dtype|pass", also the key in tables of predictions
  bool training = false;
  double time_s = 0;
  double energy_j = 0;
  double busy_s = 0;   // of the GPU, 0 where not profiled
  double issue_s = 0;  // of the host when it waits for nothing, 0 where not told
  Machine machine;
  double idle_w = 0;                                       // what its GPU drew at rest, 0 where not told
  double python = 0;                                       // calls of Python functions, 0 where not told
  std::vector<std::pair<std::size_t, double>> operations;  // indices into NetworkTable::operations, and counts
};
struct NetworkTable {
  std::vector<Operation> operations;
  std::vector<MeasuredNetwork> networks;
  // Settings that are not among them: they waited for a host that did something else, too, or may have.
  std::vector<std::string> disturbed;
  // Settings that are not among them either: operations of theirs are not known.
  std::vector<std::string> unknown;
  double fastest_launch_s = 0;  // of all hosts, which their factors are told beside; 0 where none was told
};
struct NetworkTexts {
  std::string_view networks;    // networks.csv
  std::string_view busy;        // busy.csv, may be empty
  std::string_view operations;  // of data/networks
  std::string_view settings;    // of data/networks
};
// `fastest_launch_s`: of the networks that a model is fitted to, where these are others.
Result<NetworkTable> read_networks_tables(const NetworkTexts& texts, double fastest_launch_s = 0);

// By how much settings differ that were measured twice while the host was left alone.
Result<NoiseFloor> network_noise_floor(std::string_view networks, std::string_view busy);

struct NetworkRow {
  const MeasuredNetwork* network = nullptr;
  NetworkSums sums;
};
NetworkModel fit_network_model(std::span<const NetworkRow> rows, const NetworkModel& start);

}  // namespace joulemap::predict
