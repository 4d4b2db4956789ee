// SPDX-License-Identifier: Apache-2.0
//
// Distribution of the energy of steps or epochs, for `report --by step|epoch`: median and range, and a sparkline over
// the run. Pure; joules.
#pragma once

#include <string>

#include "model/report_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// Empty for other reports, and for fewer than three rows with energy.
std::string step_energy_distribution_text(const ReportResult& result, const TextStyle& style);

}  // namespace joulemap::report
