// SPDX-License-Identifier: Apache-2.0
//
// How many kernels an operation launches, which is what the host spends its time on: learned from profiles of networks as
// geometric means (a few convolutions launch hundreds, one for each group) over the groups of physics.h, the narrowest
// that was profiled. Values; asking is pure.
#pragma once

#include <map>
#include <span>
#include <string>

#include "predict/fit/measured_operations.h"
#include "predict/graph/operation.h"

namespace joulemap::predict {

// Kernels of one call, by groups of operations.
using Launches = std::map<std::string, double, std::less<>>;

// Rows that do not tell their launches are passed over.
Launches fit_launches(std::span<const MeasuredOperation> rows);

// 0 of a view; 1 where nothing like it was profiled.
double launches_of(const Launches& launches, const Operation& operation);

}  // namespace joulemap::predict
