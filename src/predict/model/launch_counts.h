// SPDX-License-Identifier: Apache-2.0
//
// Number of kernels that an operation launches, which dominates host time. Fitted to profiled networks as geometric
// means, because a few grouped convolutions launch hundreds of kernels. launch_count() uses the narrowest group of
// physics.h that was profiled. Values; queries are pure.
#pragma once

#include <map>
#include <span>
#include <string>

#include "predict/fit/measured_operations.h"
#include "predict/graph/operation.h"

namespace joulemap::predict {

// Kernels per call, by group of operations (coefficient_group_names()).
using LaunchCounts = std::map<std::string, double, std::less<>>;

// Skips rows without a launch count.
LaunchCounts fit_launch_counts(std::span<const MeasuredOperation> rows);

// 0 for a view; 1 if no similar operation was profiled.
double launch_count(const LaunchCounts& launches, const Operation& operation);

}  // namespace joulemap::predict
