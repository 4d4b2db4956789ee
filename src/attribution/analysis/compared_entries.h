// SPDX-License-Identifier: Apache-2.0
//
// Builds the entries of a comparison: energy per unit (step, sample, epoch or run) of both sides, by path and device,
// and which entries changed, with correction for multiple tests. Pure; joules.
#pragma once

#include <span>
#include <vector>

#include "model/report_result.h"
#include "model/run_difference.h"
#include "statistics/run_variation.h"

namespace joulemap::attribution {

struct RecordingEntries {
  const ReportResult* rows = nullptr;
  double unit_count = 1;  // number of units that the rows cover
};

// `run`: the contrast of the totals, which contains the variation between runs of this program. Fills in the entries,
// the largest difference first, the confidence level of their intervals, and the differences of idle energy by cause.
void compare_entries(std::span<const RecordingEntries> a, std::span<const RecordingEntries> b,
                     const statistics::RunContrast& run, RunDifference& difference);

}  // namespace joulemap::attribution
