// SPDX-License-Identifier: Apache-2.0
//
// Plots of `model eval --html` as SVG. Each function returns an empty text without cases. The same cases give the same
// bytes. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "predict/evaluation/evaluation.h"

namespace joulemap::report {

// Predicted against measured energy of networks on logarithmic axes, with intervals.
std::string predicted_networks_svg(std::span<const predict::NetworkCase> cases);

// The same of operations, coloured by kind. Plots at most 2500 of them, evenly chosen.
std::string predicted_operations_svg(std::span<const predict::OperationCase> cases);

// Predicted / measured for each kind of operation: from P10 to P90, and the median.
std::string errors_by_kind_svg(std::span<const predict::OperationCase> cases, std::string_view title);

// The additivity factor of networks (NetworkCase::additivity_factor) against their energy.
std::string additivity_svg(std::span<const predict::NetworkCase> cases);

}  // namespace joulemap::report
