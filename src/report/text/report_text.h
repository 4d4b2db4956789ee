// SPDX-License-Identifier: Apache-2.0
//
// `joulemap report` for people: energy by domain, energy tree, power over time, energy per step, recording overhead,
// diagnostics. Fits the terminal; needs no colour. Pure.
#pragma once

#include <string>

#include "model/report_result.h"
#include "report/text/text_style.h"
#include "report/text/tree_text.h"

namespace joulemap::report {

std::string report_text(const ReportResult& result, const TreeTextOptions& view, const TextStyle& style);

}  // namespace joulemap::report
