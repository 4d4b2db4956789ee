// SPDX-License-Identifier: Apache-2.0
//
// Summary of the runs of `joulemap stat -r N`: mean and interval for each domain. Pure.
//
// One summary per domain. If any run measured a domain, runs that only estimated it are left out. Several runs:
// Student's t interval of the mean, which includes reading errors, because they vary between runs. The error of an
// estimate is the same in every run, so it is added in quadrature. A single run: the uncertainty of its energy.
#pragma once

#include <span>
#include <vector>

#include "model/stat_result.h"

namespace joulemap::report {

std::vector<StatSummary> summarize_runs(std::span<const StatRun> runs, double confidence);

}  // namespace joulemap::report
