// SPDX-License-Identifier: Apache-2.0
//
// `joulemap report` for people: energy by domain, energy tree, idle energy by cause, power over time, energy per step,
// overhead of recording, diagnostics. Fits the width of `style`; colour adds no information. Pure.
#pragma once

#include <optional>
#include <string>

#include "model/carbon_account.h"
#include "model/report_result.h"
#include "report/text/text_style.h"
#include "report/text/tree_text.h"

namespace joulemap::report {

// `account`: adds a section about carbon and price; none: no such section.
std::string report_text(const ReportResult& result, const TreeTextOptions& tree_options, const TextStyle& style,
                        const std::optional<CarbonAccount>& account = {});

}  // namespace joulemap::report
