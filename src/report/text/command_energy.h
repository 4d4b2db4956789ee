// SPDX-License-Identifier: Apache-2.0
//
// The energy of the recorded command where other processes use the same devices. Pure; joules.
#pragma once

#include "model/background_row.h"
#include "model/report_result.h"
#include "model/run_rates.h"
#include "model/run_view.h"

namespace joulemap::report {

// Texts mention what has at least this part of the energy.
inline constexpr double kMinShownEnergyShare = 0.05;

// background_energy_j(), or 0 if it is less than kMinShownEnergyShare of all energy.
double noticeable_background_j(const ReportResult& result);
double noticeable_background_j(const RunView& view);

// compute_run_rates() without the energy of other processes, if it is noticeable.
RunRates command_rates(const ReportResult& result);
RunRates command_rates(const RunView& view);

// Whether command_rates() contain other processes although they may be noticeable: the rows of the level do not separate
// them, and an estimated power of a CPU always contains them.
bool are_other_processes_included(const ReportResult& result);
bool are_other_processes_included(const RunView& view);

}  // namespace joulemap::report
