// SPDX-License-Identifier: Apache-2.0
//
// Host time to issue the operations of a network, in seconds: a cost for each operation, view, kernel and call of a
// Python function, a fixed cost, and an extra cost for some kinds (a convolution queries cuDNN). Values; all functions
// are pure.
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
// Indexed by part, then by kind; holds seconds or counts.
using HostNumbers = std::array<double, kHostNumbers>;

// "operation", "view", ..., "more_for_convolution", ...
std::string name_of_host_number(std::size_t index);

// Prior costs, s: typical of hosts of 2026, used until networks are measured.
HostNumbers prior_host_costs(bool training);

// One network: its counts of work and the measured host time.
struct HostRow {
  HostNumbers work{};
  double host_s = 0;
  double weight = 1;
};
// Regularized towards the prior costs; outliers, such as rows of a disturbed host, get less weight.
HostNumbers fit_host_costs(std::span<const HostRow> rows, const HostNumbers& prior);

}  // namespace joulemap::predict
