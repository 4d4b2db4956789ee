// SPDX-License-Identifier: Apache-2.0
//
// Tables of measurements (docs/reference/prediction-data.md) as plain rows, for fitting and evaluation. Pure: takes CSV
// texts, returns rows.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "predict/graph/operation.h"

namespace joulemap::predict {

struct MeasuredOperation {
  Operation operation;
  std::string key;             // "kind|parameters|dtype|pass|cold"
  std::string family;          // network family with such a layer, or "designed"
  bool is_cache_cold = false;  // its inputs were not in the cache
  bool in_network = false;     // measured inside a network: time only, no energy
  double time_s = 0;           // GPU time of one call
  double eager_s = 0;          // wall time per call from a Python loop; 0 if not measured
  std::optional<double> energy_j;
  double launches = 0;        // kernels per call; 0 if unknown
  double idle_w = 0;          // idle power of the GPU at that time, W; 0 if unknown
  bool is_throttled = false;  // power or temperature limit lowered clocks
  int repeats = 1;            // number of averaged measurements
};

// Rows of operations.csv: each distinct operation once, as the mean of its repeats.
Result<std::vector<MeasuredOperation>> read_operations_table(std::string_view csv);

// Rows of layers.csv: times of operations inside networks, one row for each family that contains them.
Result<std::vector<MeasuredOperation>> read_layers_table(std::string_view csv);

// Relative standard deviation of repeated measurements: from the first two measurements of each operation, root mean
// square over all operations that were measured at least twice. 0 without any.
struct NoiseFloor {
  std::size_t operations = 0;
  double energy = 0;
  double time = 0;
};
Result<NoiseFloor> compute_noise_floor(std::string_view csv);
// Seconds and joules of each measurement, by the key of the operation or network setting.
using RepeatedMeasurements = std::map<std::string, std::vector<std::pair<double, double>>>;
NoiseFloor compute_noise_floor(const RepeatedMeasurements& repeats);

}  // namespace joulemap::predict
