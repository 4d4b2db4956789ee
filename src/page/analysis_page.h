// SPDX-License-Identifier: Apache-2.0
//
// `experiment analyze --html`: an analysis as one file of HTML that loads nothing and needs no script: what speaks against
// the data, pictures, tables, verdicts, methods. Light or dark as the reader's browser is. Names from outside are text,
// never markup. The same analysis gives the same bytes. Pure.
#pragma once

#include <string>

#include "model/analysis_result.h"
#include "model/experiment_data.h"

namespace joulemap::page {

std::string analysis_html(const AnalysisResult& result, const ExperimentData& data);

}  // namespace joulemap::page
