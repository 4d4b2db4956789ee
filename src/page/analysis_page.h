// SPDX-License-Identifier: Apache-2.0
//
// `experiment analyze --html`: an analysis as one HTML file without scripts or external resources: threats to validity,
// plots, tables, verdicts, methods. Light or dark as the browser prefers. Names in the data are escaped and never
// become markup. The same analysis gives the same bytes. Pure.
#pragma once

#include <string>

#include "model/analysis_result.h"
#include "model/experiment_data.h"

namespace joulemap::page {

std::string analysis_html(const AnalysisResult& result, const ExperimentData& data);

}  // namespace joulemap::page
