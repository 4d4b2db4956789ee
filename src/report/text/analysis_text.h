// SPDX-License-Identifier: Apache-2.0
//
// An analysis as text for the terminal, as Markdown, or as LaTeX. Effects over all combinations and
// flags of the experiment come first. Pure.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "model/analysis_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// One line without the experiment's name: number of cells and rows, how many comparisons show a difference, and the
// domains in the energy.
std::string analysis_headline(const AnalysisResult& result);

// What effects_text() prints at most.
struct EffectLimits {
  std::size_t max_effects = std::numeric_limits<std::size_t>::max();
  std::size_t max_interactions = std::numeric_limits<std::size_t>::max();
  bool shows_only_totals = false;  // only effects on energy and time, and only interactions in energy
};
// Sentences about effects over all combinations of factors, then about interactions that are shown. Empty without
// effects.
std::string effects_text(const AnalysisResult& result, const TextStyle& style, const EffectLimits& limits);

// The functions of each cell with the most energy, or without energies the longest own time: at most `max_functions`
// per device. Empty if no row has functions.
std::string functions_text(const AnalysisResult& result, const TextStyle& style, std::size_t max_functions);

// For the terminal: states verdicts on energy and time in words, and omits those on other metrics. analysis_markdown()
// and analysis_latex() state all verdicts.
std::string analysis_text(const AnalysisResult& result, const TextStyle& style);
std::string analysis_markdown(const AnalysisResult& result);
std::string analysis_latex(const AnalysisResult& result);

}  // namespace joulemap::report
