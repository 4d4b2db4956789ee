// SPDX-License-Identifier: Apache-2.0
//
// Summary of the runs of `joulemap stat -r N`: mean and interval for each domain. Pure.
//
// If any run measured a domain, only the measured runs count; estimates are never averaged with measurements. Several
// runs: Student's t interval, whose spread already includes reading errors. The error of an estimate is the same in
// every run and absent from the spread, so it is added. A single run: the uncertainty of the reading.
#pragma once

#include <span>
#include <vector>

#include "model/stat_result.h"

namespace joulemap::report {

std::vector<StatSummary> summarize_runs(std::span<const StatRun> runs, double confidence);

}  // namespace joulemap::report
