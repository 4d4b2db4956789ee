// SPDX-License-Identifier: Apache-2.0
//
// A prediction for people: energy of a pass or step with its interval, energy by layer, unknown operations, CO2 and
// cost. Fits terminals of 70 columns or more. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "predict/model/prediction_report.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// `top`: number of layers with the most energy; 0 shows all, in network order.
std::string prediction_text(const predict::PredictionReport& report, std::size_t top, const TextStyle& style);

// Output of --explain: each operation of a layer with its features and physics.
std::string prediction_explanation_text(const predict::PredictionReport& report, const TextStyle& style);

}  // namespace joulemap::report
