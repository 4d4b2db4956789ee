// SPDX-License-Identifier: Apache-2.0
//
// The entries of a comparison: energies per unit of all recordings by path and device, and what changed among them when
// there are many. Pure; joules.
#pragma once

#include <span>
#include <vector>

#include "model/report_result.h"
#include "model/run_difference.h"
#include "statistics/run_variation.h"

namespace joulemap::attribution {

// The half widths of reports are of 90 %: over the normal quantile they are standard deviations.
inline constexpr double kHalfWidth90 = 1.6449;

struct RecordingEntries {
  const ReportResult* rows = nullptr;
  double units = 1;  // that the rows are divided by
};

// `run`: the contrast of the totals, which states how much runs of this program differ. Fills in entries, the largest
// difference first, and their level.
void compare_entries(std::span<const RecordingEntries> a, std::span<const RecordingEntries> b,
                     const statistics::RunContrast& run, RunDifference& difference);

}  // namespace joulemap::attribution
