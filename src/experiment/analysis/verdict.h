// SPDX-License-Identifier: Apache-2.0
//
// Texts for the reader: a verdict for each comparison, and the methods paragraph for a paper. A verdict claims only
// what the tests support: if the sample is too small to detect a difference, the verdict states that instead of "no
// difference". Pure.
#pragma once

#include <optional>
#include <string>

#include "model/analysis_result.h"

namespace joulemap::experiment {

std::string verdict_sentence(const Comparison& comparison, const AnalysisResult& result);

// "uses 12.3 % less energy", "takes 8 % more time", "has 2 % more accuracy".
std::string change_phrase(const Measure& measure, double difference, std::optional<double> percent);

// "energy", "time", "energy of gpu", "accuracy".
std::string measure_phrase(const Measure& measure);

// " at 87.5 % confidence" if an interval has less than 1 - alpha, otherwise empty.
std::string confidence_phrase(const std::optional<double>& confidence, const AnalysisResult& result);

std::string methods_paragraph(const AnalysisResult& result);

}  // namespace joulemap::experiment
