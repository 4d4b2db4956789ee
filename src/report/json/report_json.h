// SPDX-License-Identifier: Apache-2.0
//
// `joulemap report --json`: schema joulemap.report/1, one line. Programs read it: keys may be added, never removed.
// Unknown values are null, and a diagnostic gives the reason.
#pragma once

#include <optional>
#include <string>

#include "model/carbon_account.h"
#include "model/report_result.h"

namespace joulemap::report {

// `account`: carbon and price; null without.
std::string report_json(const ReportResult& result, const std::optional<CarbonAccount>& account = {});

}  // namespace joulemap::report
