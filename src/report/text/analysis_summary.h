// SPDX-License-Identifier: Apache-2.0
//
// Summary of an analysis for one screen: effects over all combinations, flags, how often each two levels differ, and the
// largest differences. Pure.
#pragma once

#include <string>

#include "model/analysis_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

std::string analysis_summary(const AnalysisResult& result, const TextStyle& style);

}  // namespace joulemap::report
