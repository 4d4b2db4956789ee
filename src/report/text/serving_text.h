// SPDX-License-Identifier: Apache-2.0
//
// The part of a report by request or by token that rows do not show: where the energy of a serving engine went, joules
// per token, and per request by length, batch size and label. Empty without a serving engine. Pure.
#pragma once

#include <string>

#include "model/report_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

std::string serving_text(const ReportResult& result, const TextStyle& style);

}  // namespace joulemap::report
