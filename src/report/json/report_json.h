// SPDX-License-Identifier: Apache-2.0
//
// `joulemap report --json`: schema joulemap.report/1, one line. Programs read it: keys may be added, never removed.
// Unknown values are null, and a diagnostic gives the reason.
#pragma once

#include <optional>
#include <string>

#include "model/account.h"
#include "model/report_result.h"

namespace joulemap::report {

// `account`: carbon and price; null without.
std::string report_json(const ReportResult& result, const std::optional<Account>& account = {});

}  // namespace joulemap::report
