// SPDX-License-Identifier: Apache-2.0
//
// The lines of a report that say what a run was: how long, how many steps, what each cost, what the program told of
// itself, and what probing, dithering and recording cost. Pure.
#pragma once

#include <string>

#include "model/report_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

std::string summary_text(const ReportResult& result, const TextStyle& style);

}  // namespace joulemap::report
