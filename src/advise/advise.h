// SPDX-License-Identifier: Apache-2.0
//
// Finds ways to save energy in a recorded run. Each rule reads the ledger and returns at most one finding with the
// energy it concerns and the part of it that the change would save. To add a rule: a function in waiting_rules.cc or
// kernel_rules.cc and a line in its table. Pure; joules and seconds.
#pragma once

#include "model/advice.h"
#include "model/report_result.h"

namespace joulemap::advise {

// Reports of one recording.
struct AdviceInput {
  const ReportResult& by_layer;  // of the examined part
  const ReportResult& by_kernel;
  const ReportResult& by_op;  // of the whole run: light mode records operations in its first steps only
  ExaminedPart part = {};
};

// Findings that save at least kMinSavedShare of the GPU energy of the examined part, the largest saving first.
inline constexpr double kMinSavedShare = 0.03;
Advice advise(const AdviceInput& input);

}  // namespace joulemap::advise
