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
#include <vector>

#include "base/result.h"
#include "predict/measured_operations.h"
#include "predict/operation_model.h"

namespace joulemap::predict {

// What is added up over the operations of a network.
struct NetworkSums {
  double gpu_s = 0;       // of all operations
  double products_j = 0;  // above rest: of matrix products, convolutions, attention
  double others_j = 0;    // above rest: of everything else
  double calls = 0;       // operations that launch something
  double views = 0;       // that launch nothing, and cost the host a little
  double launches = 0;    // kernels
  double steps_s = 0;     // of the host for optimizers' steps, which are measured with it
  bool training = false;
};

struct NetworkEstimate {
  double time_s = 0;
  double gpu_s = 0;   // that the GPU is busy
  double host_s = 0;  // that the host needs to launch everything
  double energy_j = 0;
};

// Seconds of the host by pass: of a call, a view, a kernel, and once.
using HostCosts = std::array<double, 4>;

struct NetworkModel {
  double idle_w = 0;          // with clocks up, nothing running
  double products_scale = 1;  // of energies above rest in networks, beside operations alone
  double others_scale = 1;
  double gpu_time_scale = 1;
  HostCosts inference = {12e-6, 3e-6, 10e-6, 50e-6};  // as hosts of 2026 need them, until networks tell
  HostCosts training = {18e-6, 6e-6, 11e-6, 700e-6};
  std::map<std::string, double, std::less<>> launches;  // kernels of an operation, by the groups of physics.h
  // Intervals: 90 % of networks of families that were left out lie within exp(+-width) (interval_width).
  double inference_width = 0.35;
  double training_width = 0.35;
  double host_width = 2.5;  // times those, where the GPU only waits for the host
  double layer_width = 0.7;
};

// Half of an interval, in logarithms; `waiting` is the share of the time in which the GPU waits for the host.
double interval_width(const NetworkModel& model, bool training, double waiting);

double launches_of(const NetworkModel& model, const Operation& operation);

// `host_factor`: how much slower than that of the measurements the host is.
NetworkEstimate estimate_network(const NetworkModel& model, const NetworkSums& sums, double host_factor);

void add_operation(NetworkSums& sums, const NetworkModel& model, const Operation& operation,
                   const OperationEstimate& guess);

struct MeasuredNetwork {
  std::string name;
  std::string family;
  std::string setting;  // "name|batch|size|dtype|pass", also the key in tables of predictions
  std::string slice;    // the run that measured it: its host may be faster or slower than others'
  bool training = false;
  double time_s = 0;
  double energy_j = 0;
  double busy_s = 0;                                       // of the GPU, 0 where not profiled
  std::vector<std::pair<std::size_t, double>> operations;  // indices into NetworkTable::operations, and counts
};
struct NetworkTable {
  std::vector<Operation> operations;
  std::vector<MeasuredNetwork> networks;
};
// networks.csv, busy.csv (may be empty), and the lists of data/networks: operations.csv and settings.csv.
Result<NetworkTable> read_networks_tables(std::string_view networks, std::string_view busy, std::string_view operations,
                                          std::string_view settings);

struct NetworkRow {
  const MeasuredNetwork* network = nullptr;
  NetworkSums sums;
  double host_factor = 1;
};
// Also finds each run's host factor, which it writes into the rows.
NetworkModel fit_network_model(std::span<NetworkRow> rows, const NetworkModel& start);
std::map<std::string, double, std::less<>> fit_launches(std::string_view layers_csv);

}  // namespace joulemap::predict
