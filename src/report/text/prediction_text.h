// SPDX-License-Identifier: Apache-2.0
//
// A prediction for people: what a pass or a step draws and how sure that is, which layers draw it, what is not known,
// what it weighs in CO2 and costs. Fits the columns of the terminal, from 70 on. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "predict/model/prediction_report.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// `top`: layers at most, those that draw most; 0 shows all, in the order of the network.
std::string prediction_text(const predict::PredictionReport& report, std::size_t top, const TextStyle& style);

// What --explain adds: each operation of a layer with its features and its physics.
std::string explanation_text(const predict::PredictionReport& report, const TextStyle& style);

}  // namespace joulemap::report
