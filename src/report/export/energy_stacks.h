// SPDX-License-Identifier: Apache-2.0
//
// The rows of a level as stacks, as flame graphs of others want them: device, phase, modules within modules, operation.
// A module is named by its whole path, because readers add up what has the same name. Pure; joules and seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/cause_class.h"
#include "model/run_view.h"

namespace joulemap::report {

struct EnergyStack {
  std::vector<std::string> frames;  // from the outermost in; no control characters
  std::optional<double> energy_j;
  double time_s = 0;
  std::uint64_t count = 0;  // of calls; 0 where it is not known
  std::optional<Cause> cause = {};
};

struct EnergyStacks {
  std::string by;
  std::vector<EnergyStack> stacks;  // what is idle and what is nobody's among them
  std::size_t without_energy = 0;   // how many have none
};

// `by` empty: layers, else the first level that has rows. An error where there is nothing to stack.
Result<EnergyStacks> energy_stacks(const RunView& view, std::string_view by);

}  // namespace joulemap::report
