// SPDX-License-Identifier: Apache-2.0
//
// `joulemap report` for people: energy by domain, power over time, what recording cost. 80 columns, no colour.
#pragma once

#include <string>

#include "model/report_result.h"

namespace joulemap::report {

// What the reader's terminal can show.
enum class Characters { unicode, ascii };

std::string report_text(const ReportResult& result, Characters characters);

}  // namespace joulemap::report
