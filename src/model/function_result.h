// SPDX-License-Identifier: Apache-2.0
//
// What functions of a framework or a program cost in rows of an experiment, and why. Plain data; seconds, joules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "model/cause_class.h"

namespace joulemap {

// In one row, on one device, as `report --by function` tells it.
struct FunctionResult {
  std::string name;
  std::string device;                  // "gpu0", "cpu"
  std::optional<std::uint64_t> count;  // calls; of a GPU, kernels
  double time_s = 0;
  std::optional<double> energy_j;
  std::optional<Cause> cause = {};
};

// Over the rows of a cell that tell it: means of a row.
struct CellFunction {
  std::string name;
  std::string device;
  std::size_t n = 0;  // rows
  std::optional<double> count;
  double time_s = 0;
  std::optional<double> energy_j;
  std::optional<double> share;  // of the energy of those rows
  std::optional<Cause> cause;
};

}  // namespace joulemap
