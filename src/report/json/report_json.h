// SPDX-License-Identifier: Apache-2.0
//
// `joulemap report --json`: schema joulemap.report/1, one line. Programs read it: keys may be added, never removed.
// Unknown values are null, and a diagnostic gives the reason.
#pragma once

#include <string>

#include "model/report_result.h"

namespace joulemap::report {

std::string report_json(const ReportResult& result);

}  // namespace joulemap::report
