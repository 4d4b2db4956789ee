// SPDX-License-Identifier: Apache-2.0
//
// Sentences about effects over all combinations of factors. A sentence claims a general effect only if the combinations
// agree; otherwise it states how they differ. Pure.
#pragma once

#include <string>

#include "model/analysis_result.h"

namespace joulemap::experiment {

std::string verdict_sentence(const MainEffect& effect, const AnalysisResult& result);
std::string verdict_sentence(const Interaction& interaction, const AnalysisResult& result);

// The sentences of the methods paragraph; empty without main effects.
std::string effect_methods_sentences(const AnalysisResult& result);

}  // namespace joulemap::experiment
