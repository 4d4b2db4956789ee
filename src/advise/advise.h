// SPDX-License-Identifier: Apache-2.0
//
// Finds ways to save energy in a recorded run. Each rule reads the ledger and returns at most one finding with the
// energy it concerns and the part of it that the change would save. Runs without energy of a GPU have rules of their
// own. To add a rule: a function in waiting_rules.cc, kernel_rules.cc or cpu_rules.cc and a line in its table. Pure;
// joules and seconds.
#pragma once

#include "model/advice.h"
#include "model/report_result.h"

namespace joulemap::advise {

// Reports of one recording.
struct AdviceInput {
  const ReportResult& layer_report;  // of the examined part, with the idle energy of the program only
  const ReportResult& kernel_report;
  const ReportResult& operator_report;  // of the whole run: light mode records operations in its first steps only
  ExaminedRunPart examined_run_part = {};
};

// Findings that save at least kMinSavedEnergyShare of Advice::energy_j, the largest saving first.
inline constexpr double kMinSavedEnergyShare = 0.03;
Advice advise(const AdviceInput& input);

}  // namespace joulemap::advise
