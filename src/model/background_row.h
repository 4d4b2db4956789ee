// SPDX-License-Identifier: Apache-2.0
//
// The report row of the processes outside of the command and of the rest of the machine. Pure; joules.
#pragma once

#include <span>
#include <string_view>

#include "model/report_result.h"

namespace joulemap {

inline constexpr std::string_view kBackgroundRowName = "background";

bool is_background_row(const ReportRow& row);
double background_energy_j(std::span<const ReportRow> rows);

}  // namespace joulemap
