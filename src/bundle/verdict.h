// SPDX-License-Identifier: Apache-2.0
//
// Whether a recording can be quoted as it is, from the diagnostics and the data of its report. Pure.
#pragma once

#include <optional>

#include "model/bundle_result.h"
#include "model/report_result.h"

namespace joulemap::bundle {

// `report`: by layer, because its rows contain the energy of other processes. `clock_jump_s`: the largest change of the
// offset between the clocks of a machine; none when there was none.
MeasurementVerdict judge_measurement(const ReportResult& report, std::optional<double> clock_jump_s);

}  // namespace joulemap::bundle
