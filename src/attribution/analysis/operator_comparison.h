// SPDX-License-Identifier: Apache-2.0
//
// Compares two programs that do the same job by operation and shape: `diff --by operator`. Groups of work
// (operator_groups.h) are compared as any other entries are, with the same noise model, and changed groups get a cause
// (operator_causes.h). The differences of all entries add up to the difference of the totals. Pure.
#pragma once

#include <span>
#include <vector>

#include "attribution/analysis/operator_groups.h"
#include "attribution/analysis/run_comparison.h"
#include "base/result.h"
#include "model/run_difference.h"

namespace joulemap::attribution {

// A recording with its rows at level work, and the work in these rows.
struct OperatorRecording {
  RunReports reports;
  RecordedWork work;
};

// Fails as compare_runs does.
Result<RunDifference> compare_operators(std::span<const OperatorRecording> a, std::span<const OperatorRecording> b,
                                        const ComparisonQuery& query);

}  // namespace joulemap::attribution
