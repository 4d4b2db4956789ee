// SPDX-License-Identifier: Apache-2.0
//
// The rows of a report as a table for people: energy, share, time, how often, where. The largest first; what does not fit is
// summed up in a last line. 80 columns, no colour.
#pragma once

#include <string>

#include "model/report_result.h"

namespace joulemap::report {

// Nothing for a report by domain, whose rows stand above.
std::string ledger_text(const ReportResult& result, std::size_t most_rows = 30);

}  // namespace joulemap::report
