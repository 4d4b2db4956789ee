// SPDX-License-Identifier: Apache-2.0
//
// `joulemap diff --json`: schema joulemap.diff/1, one line. Energies are joules per unit; "per" is the unit. Pure.
#pragma once

#include <string>

#include "model/run_difference.h"

namespace joulemap::report {

std::string diff_json(const RunDifference& difference);

}  // namespace joulemap::report
