// SPDX-License-Identifier: Apache-2.0
//
// Compares the recording files of two sides: reads the steps of every recording, then the rows of the part of the run
// that is compared, which is the steady state or the whole run.
#pragma once

#include <span>
#include <string>

#include "attribution/analysis/run_comparison.h"
#include "attribution/ledger/ledger.h"
#include "base/result.h"
#include "model/run_difference.h"

namespace joulemap::attribution {

// Each file is a recording. Fails if one is unreadable, and as compare_runs does.
Result<RunDifference> compare_recordings(std::span<const std::string> a, std::span<const std::string> b, RowLevel level,
                                         const ComparisonQuery& query);

}  // namespace joulemap::attribution
