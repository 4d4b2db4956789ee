// SPDX-License-Identifier: Apache-2.0
//
// What steps or epochs cost, as a distribution: a line of quantiles and a curve over the run. Pure; joules.
#pragma once

#include <string>

#include "model/report_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// Nothing for other reports, and for less than three of them.
std::string sequence_text(const ReportResult& result, const TextStyle& style);

}  // namespace joulemap::report
