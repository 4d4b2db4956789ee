// SPDX-License-Identifier: Apache-2.0
//
// Distribution of energy over steps or epochs: a line of quantiles and a curve over the run. Pure; joules.
#pragma once

#include <string>

#include "model/report_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// Empty for other reports and for fewer than three rows.
std::string step_energy_distribution_text(const ReportResult& result, const TextStyle& style);

}  // namespace joulemap::report
