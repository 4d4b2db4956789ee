// SPDX-License-Identifier: Apache-2.0
//
// `joulemap predict` for people: energy of an inference pass or training step with its interval, energy by layer,
// unknown operations, CO2 and cost. Fits terminals of 70 columns or more. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "predict/model/prediction_report.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// `top`: maximum number of layers, in descending order of energy; 0: all, in network order.
std::string prediction_text(const predict::PredictionReport& report, std::size_t top, const TextStyle& style);

// Output of --explain: the operations of a layer with their physical terms and features. Empty without --explain.
std::string prediction_explanation_text(const predict::PredictionReport& report, const TextStyle& style);

}  // namespace joulemap::report
