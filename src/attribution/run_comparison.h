// SPDX-License-Identifier: Apache-2.0
//
// Two runs, entry by entry. Entries of the same path on the same device are held against each other, per step where
// both have steps.
//
// What is noise: the interval of each row (how well energy was measured and shared out), and beside it how much steps
// of the run differ among themselves, as means of ten stretches of the run show it. Errors of the two runs are taken
// to be independent, so the interval of a difference is as far to either side as both distances in quadrature. An
// error that both share (the same sensor, wrong by the same factor) makes that interval too wide, never too narrow.
// How much another run of the same program would differ is more than that: compare several. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/report_result.h"
#include "model/run_difference.h"

namespace joulemap::attribution {

struct ComparisonQuery {
  std::string per;                  // empty: samples, steps, epochs or the run, the first that both tell
  std::optional<double> fail_over;  // a share
};

// Of a run: its report at the level that is compared, and its report by step.
struct RunReports {
  ReportResult rows;
  ReportResult steps;
};

// Fails where one was measured and the other only estimated, and where a unit is asked for that one does not tell.
Result<RunDifference> compare_runs(const RunReports& a, const RunReports& b, const ComparisonQuery& query);

}  // namespace joulemap::attribution
