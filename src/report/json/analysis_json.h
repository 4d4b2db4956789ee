// SPDX-License-Identifier: Apache-2.0
//
// `experiment analyze --json`: schema joulemap.analysis/1, one line. Pure.
#pragma once

#include <string>

#include "model/analysis_result.h"

namespace joulemap::report {

std::string analysis_json(const AnalysisResult& result);

}  // namespace joulemap::report
