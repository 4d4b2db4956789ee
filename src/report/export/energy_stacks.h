// SPDX-License-Identifier: Apache-2.0
//
// The rows of a level as stacks, for flame graph viewers: device, phase, nested modules, operation. The frame of a
// module is its full dotted name, because viewers merge frames of equal name. Pure; joules and seconds.
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
  std::vector<std::string> frames;  // outermost first; no control characters
  std::optional<double> energy_j;
  double time_s = 0;
  std::uint64_t call_count = 0;  // number of calls; 0 if unknown
  std::optional<EnergyCause> cause_class = {};
};

struct EnergyStacks {
  std::string by;
  std::vector<EnergyStack> stacks;       // one per row, and stacks for idle and unattributed energy
  std::size_t missing_energy_count = 0;  // number of rows whose energy is unknown
};

// Stacks of the level `level_name`. If `level_name` is empty: of layers, or without layers of the first level. Fails
// without such rows.
Result<EnergyStacks> energy_stacks(const RunView& view, std::string_view level_name);

}  // namespace joulemap::report
