// SPDX-License-Identifier: Apache-2.0
//
// What a maker says of a GPU: the scale that times and energies are told in before anything is fitted. Plain data.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "predict/graph/operation.h"

namespace joulemap::predict {

struct Datasheet {
  std::string name;                       // "NVIDIA H200"
  double multiprocessors = 0;             //
  std::array<double, 4> peak_flops = {};  // of matrix products by Dtype, per second, without sparsity
  double memory_bytes_per_s = 0;
  double cache_bytes = 0;        // the last level's
  double cache_bytes_per_s = 0;  // measured or about twice the memory's; makers do not say
  double power_limit_w = 0;
  double idle_w = 0;  // with clocks up and a context, which makers do not say either: about a sixth of the limit
};

// Those that predictions can be made for without a measurement. The first is the one with a fitted profile.
std::span<const Datasheet> known_datasheets();

// By a part of its name, in any case, with or without blanks and dashes: "h200", "H100 PCIe", "NVIDIA A100-SXM4-80GB".
std::optional<Datasheet> find_datasheet(std::string_view name);

}  // namespace joulemap::predict
