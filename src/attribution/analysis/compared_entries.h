// SPDX-License-Identifier: Apache-2.0
//
// Builds the entries of a comparison: energy per unit of all recordings, by path and device, and which entries changed,
// with correction for multiple tests. Pure; joules.
#pragma once

#include <span>
#include <vector>

#include "model/report_result.h"
#include "model/run_difference.h"
#include "statistics/run_variation.h"

namespace joulemap::attribution {

// Normal quantile: reports contain half widths at 90 %; divided by this they are standard deviations.
inline constexpr double kHalfWidth90 = 1.6449;

struct RecordingEntries {
  const ReportResult* rows = nullptr;
  double unit_count = 1;  // divisor of the rows
};

// `run`: the contrast of the totals, which contains the variation between runs of this program. Fills in the entries,
// the largest difference first, and their interval level.
void compare_entries(std::span<const RecordingEntries> a, std::span<const RecordingEntries> b,
                     const statistics::RunContrast& run, RunDifference& difference);

}  // namespace joulemap::attribution
