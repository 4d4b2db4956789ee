// SPDX-License-Identifier: Apache-2.0
//
// `model eval --html`: an evaluation as one HTML file without scripts or external resources: predicted against measured
// energy, errors by kind of operation, additivity, learners, and all scores. The same evaluation gives the same bytes.
// Pure.
#pragma once

#include <string>

#include "predict/evaluation/evaluation.h"

namespace joulemap::page {

std::string evaluation_html(const predict::Evaluation& evaluation);

}  // namespace joulemap::page
