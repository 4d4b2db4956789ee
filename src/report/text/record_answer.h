// SPDX-License-Identifier: Apache-2.0
//
// The answer at the end of `joulemap record`: total energy with its interval, what the GPUs waited for, the costliest
// layers, what to try first, and the next commands. Pure; 80 columns.
#pragma once

#include <string>

#include "model/record_result.h"
#include "model/report_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// `result` is by layer.
std::string record_answer_text(const ReportResult& result, const std::string& file, const TextStyle& style);

// The line shown while a command runs: "12.3 s   351 W   4.32 kJ   step 412   10.5 J/step".
std::string live_text(const LiveStatus& status);

}  // namespace joulemap::report
