// SPDX-License-Identifier: Apache-2.0
//
// Datasheet values of a GPU: the scale of times and energies before anything is fitted. Plain data.
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
  std::array<double, 4> peak_flops = {};  // FLOP/s of matrix products by Dtype, without sparsity
  double memory_bytes_per_s = 0;
  double cache_bytes = 0;        // last-level cache
  double cache_bytes_per_s = 0;  // measured, or about twice the memory bandwidth: datasheets omit it
  double power_limit_w = 0;
  double idle_w = 0;  // W with clocks up and a context; datasheets omit it: about a sixth of the limit
};

// GPUs that predictions support without a measurement. The first one, the H200, has a fitted profile.
std::span<const Datasheet> known_datasheets();

// Matches whole words of the name in any order, ignoring case: "h200", "H100 PCIe", "rtx4090", "NVIDIA A100 80GB PCIe".
// The name must contain the model. Without form factor and memory size, the first variant of the table; empty if a word
// does not belong to the GPU.
std::optional<Datasheet> find_datasheet(std::string_view name);

}  // namespace joulemap::predict
