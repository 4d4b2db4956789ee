// SPDX-License-Identifier: Apache-2.0
//
// The lines of a report that describe the run: duration, steps, energy per step, metrics that the program reported, and
// the overhead of probing, dithering and recording. Pure.
#pragma once

#include <string>

#include "model/report_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

std::string summary_text(const ReportResult& result, const TextStyle& style);

}  // namespace joulemap::report
