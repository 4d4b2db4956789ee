// SPDX-License-Identifier: Apache-2.0
//
// An analysis as a text: for the terminal, as Markdown, as LaTeX. What speaks against the data stands first. Pure.
#pragma once

#include <string>

#include "model/analysis_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// In one sentence, without its name: how much there is, and how many of the comparisons show a difference.
std::string analysis_headline(const AnalysisResult& result);

// Verdicts in words for energy and time; of other measures the table alone. All are in the other formats.
std::string analysis_text(const AnalysisResult& result, const TextStyle& style);
std::string analysis_markdown(const AnalysisResult& result);
std::string analysis_latex(const AnalysisResult& result);

}  // namespace joulemap::report
