// SPDX-License-Identifier: Apache-2.0
//
// Tables of measurements (docs/prediction-data.md) as plain rows: what models are fitted to and judged by. Pure: texts of
// CSV in, rows out.
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
  std::string key;          // "kind|parameters|dtype|pass|cold"
  std::string family;       // of networks that have such a layer, or "designed"
  bool cold = false;        // its data were not in the cache
  bool in_network = false;  // measured where it stands in a network: a time without energy
  double time_s = 0;        // on the GPU, of one call
  double eager_s = 0;       // of one call that Python makes after another; 0 where not measured
  std::optional<double> energy_j;
  double launches = 0;   // kernels of one call; 0 where not told
  double idle_w = 0;     // what the GPU drew at rest then
  bool limited = false;  // power or heat lowered clocks
  int repeats = 1;       // measurements that this is the mean of
};

// Rows of operations.csv: each distinct operation once, the mean of its repeats.
Result<std::vector<MeasuredOperation>> read_operations_table(std::string_view csv);

// Rows of layers.csv: times of operations where they stood in networks, a row for each family that has one.
Result<std::vector<MeasuredOperation>> read_layers_table(std::string_view csv);

// What one measurement of an operation differs from another by, relative, root mean square over those measured twice.
struct NoiseFloor {
  std::size_t operations = 0;
  double energy = 0;
  double time = 0;
};
Result<NoiseFloor> noise_floor(std::string_view csv);
// Seconds and joules of each measurement, by what was measured.
using Repeats = std::map<std::string, std::vector<std::pair<double, double>>>;
NoiseFloor noise_floor(const Repeats& repeats);

}  // namespace joulemap::predict
