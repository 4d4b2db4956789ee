// SPDX-License-Identifier: Apache-2.0
//
// What an analysis found, on one screen: in how many cells each pair of levels differs, and the largest differences.
// Pure.
#pragma once

#include <string>

#include "model/analysis_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

std::string analysis_summary(const AnalysisResult& result, const TextStyle& style);

}  // namespace joulemap::report
