// SPDX-License-Identifier: Apache-2.0
//
// What a host takes to issue the operations of a network, in seconds: for each operation, view, kernel and call of a
// Python function, once, and more for some kinds of operations (a convolution asks cuDNN how). Values; all of it is pure.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "predict/graph/operation.h"

namespace joulemap::predict {

enum class HostPart : std::size_t { operation, view, kernel, once, python };
inline constexpr std::size_t kHostParts = 5;
inline constexpr std::size_t kHostNumbers = kHostParts + kKindCount;
// By part, then by kind; as seconds, or as how often.
using HostNumbers = std::array<double, kHostNumbers>;

// "operation", "view", ..., "more_for_convolution", ...
std::string name_of_host_number(std::size_t index);

// As hosts of 2026 need them, until networks tell.
HostNumbers believed_host_costs(bool training);

// A network: what there is to do, and what the host took.
struct HostRow {
  HostNumbers work{};
  double host_s = 0;
  double weight = 1;
};
// Pulled towards what is believed; rows that are far off, as a disturbed host's are, count less.
HostNumbers fit_host_costs(std::span<const HostRow> rows, const HostNumbers& belief);

}  // namespace joulemap::predict
