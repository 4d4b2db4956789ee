// SPDX-License-Identifier: Apache-2.0
//
// The lines of a report about the whole run: duration, energy per epoch, step and sample, metrics that the measured
// program reported, the cost of probing, dithering and recording, and a failed exit. Pure.
#pragma once

#include <string>

#include "model/report_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

std::string summary_text(const ReportResult& result, const TextStyle& style);

}  // namespace joulemap::report
