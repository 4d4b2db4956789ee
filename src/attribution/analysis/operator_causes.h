// SPDX-License-Identifier: Apache-2.0
//
// States why operator groups differ. The first rule that applies to a group is its cause. One change of a program
// affects many groups, each perhaps within the noise: groups of a cause are summed, and a cause is stated if its sum
// exceeds the noise and kMinCauseEnergyShare of the total. Causes are found in names, shapes, counts and times, not by
// experiment: docs/explanation/comparing-runs.md lists them with what they rest on. Pure.
#pragma once

#include "model/run_difference.h"

namespace joulemap::attribution {

inline constexpr double kMinCauseEnergyShare = 0.01;

// Fills in the cause of each group and the causes of the difference.
void explain_operator_differences(RunDifference& difference);

}  // namespace joulemap::attribution
