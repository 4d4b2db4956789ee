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

enum class HostCostTerm : std::size_t { operation, view, kernel, fixed, python };
inline constexpr std::size_t kHostCostTermCount = 5;
inline constexpr std::size_t kHostCostCount = kHostCostTermCount + kOperationKindCount;
// One entry for each HostCostTerm, then one for each Kind: seconds, or counts of operations.
using HostCostVector = std::array<double, kHostCostCount>;

// Name in a profile: "operation", "view", ..., "more_for_convolution", ...
std::string host_cost_name(std::size_t index);

// Prior costs in seconds, typical of hosts of 2026, for the fit and for profiles without measured networks.
HostCostVector prior_host_costs(bool training);

// One step of a network: its counts of work and the measured host time.
struct HostObservation {
  HostCostVector work{};
  double host_s = 0;
  double weight = 1;
};
// Fits the costs, regularized towards the prior costs. Outliers, such as rows of a disturbed host, get less weight.
// Without rows the result equals the prior.
HostCostVector fit_host_costs(std::span<const HostObservation> rows, const HostCostVector& prior);

}  // namespace joulemap::predict
