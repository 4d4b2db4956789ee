// SPDX-License-Identifier: Apache-2.0
//
// Power and gauges of a run over time, for plots and for the epochs of a row. Pure; seconds, watts.
#pragma once

#include "model/experiment_data.h"
#include "model/run_view.h"

namespace joulemap::experiment {

// Power of the counted domains, measured ones if there are any, and gauges of GPUs, in at most kMaxSeriesSlices slices.
// Without channels if the run has no power.
RowSeries make_row_series(const ReportResult& run);

// Gauges of GPUs between two times since the start of the run, from the slices that overlap.
GaugeValues mean_gauges_in_interval(const ReportResult& run, double begin_s, double end_s);

}  // namespace joulemap::experiment
