// SPDX-License-Identifier: Apache-2.0
//
// Output of `joulemap import` for an experiment: numbers of rows and cells, and damaged rows. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/experiment_data.h"

namespace joulemap::report {

struct ExperimentImportSummary {
  std::string format;
  std::vector<std::string> inputs;
  std::string folder;
};

std::string experiment_import_text(const ExperimentData& data, const ExperimentImportSummary& imported);
// Schema joulemap.import/1, as for recordings, without the members that only recordings have.
std::string experiment_import_json(const ExperimentData& data, const ExperimentImportSummary& imported);

}  // namespace joulemap::report
