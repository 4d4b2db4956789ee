// SPDX-License-Identifier: Apache-2.0
//
// What tests and methods say, in words: a verdict for each comparison, and the paragraph on methods that a paper needs.
// Nothing is claimed that the numbers do not show: a difference that so few rows cannot show is called that, not "none".
// Pure.
#pragma once

#include <string>

#include "model/analysis_result.h"

namespace joulemap::experiment {

std::string verdict_of(const Comparison& comparison, const AnalysisResult& result);

std::string methods_paragraph(const AnalysisResult& result);

}  // namespace joulemap::experiment
