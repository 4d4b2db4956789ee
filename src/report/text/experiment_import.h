// SPDX-License-Identifier: Apache-2.0
//
// Output of `joulemap import` when it writes an experiment: number of rows, cells and epochs, and diagnostics. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/experiment_data.h"

namespace joulemap::report {

struct ExperimentImportSummary {
  std::string format_name;
  std::vector<std::string> input_paths;
  std::string experiment_folder;
};

std::string experiment_import_text(const ExperimentData& data, const ExperimentImportSummary& import_summary);
// Schema joulemap.import/1, one line; with members of an experiment instead of those of a recording (import_json.h).
std::string experiment_import_json(const ExperimentData& data, const ExperimentImportSummary& import_summary);

}  // namespace joulemap::report
