// SPDX-License-Identifier: Apache-2.0
//
// Energy, time and cause of the functions of a framework or program in the rows of an experiment. Plain data; seconds,
// joules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "model/cause_class.h"

namespace joulemap {

// A function in one row on one device, as printed by `report --by function`.
struct FunctionResult {
  std::string name;
  std::string device;                  // "gpu0", "cpu"
  std::optional<std::uint64_t> count;  // number of calls; on a GPU, of kernels
  double time_s = 0;                   // without the functions that it calls
  std::optional<double> energy_j;
  std::optional<EnergyCause> cause = {};
  std::optional<double> cumulative_s = {};  // with the functions that it calls; only from profiles that contain it
};

// A function in one cell: means over the rows that contain it.
struct CellFunctionMean {
  std::string name;
  std::string device;
  std::size_t n = 0;  // number of rows
  std::optional<double> count;
  double time_s = 0;
  std::optional<double> energy_j;
  std::optional<double> share;  // fraction of the energy of these rows
  std::optional<EnergyCause> cause;
  std::optional<double> cumulative_s = {};
};

}  // namespace joulemap
