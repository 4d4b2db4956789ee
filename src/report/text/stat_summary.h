// SPDX-License-Identifier: Apache-2.0
//
// The runs of `joulemap stat -r N` together: mean and interval for each domain. Pure.
//
// A domain that some run measured is summed up from the runs that did; estimates are never averaged with
// measurements. Several runs: Student's interval of their spread, which contains the readings' own errors. An
// estimate's error is the same in every run and does not show in their spread: it is added. A single run: the
// reading's own uncertainty.
#pragma once

#include <span>
#include <vector>

#include "model/stat_result.h"

namespace joulemap::report {

std::vector<StatSummary> summarize(std::span<const StatRun> runs, double confidence);

}  // namespace joulemap::report
