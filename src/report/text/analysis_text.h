// SPDX-License-Identifier: Apache-2.0
//
// An analysis as text for the terminal, as Markdown, or as LaTeX. Validity flags come first. Pure.
#pragma once

#include <string>

#include "model/analysis_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// One sentence without the experiment's name: numbers of rows and cells, and how many comparisons show a difference.
std::string analysis_headline(const AnalysisResult& result);

// Prints verdicts in words for energy and time, and only the table for other measures; the other formats contain all
// verdicts.
std::string analysis_text(const AnalysisResult& result, const TextStyle& style);
std::string analysis_markdown(const AnalysisResult& result);
std::string analysis_latex(const AnalysisResult& result);

}  // namespace joulemap::report
