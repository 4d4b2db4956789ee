// SPDX-License-Identifier: Apache-2.0
//
// What `joulemap import` says when an experiment is written: how many rows and cells, what is damaged. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/experiment_data.h"

namespace joulemap::report {

struct ExperimentImported {
  std::string format;
  std::vector<std::string> inputs;
  std::string folder;
};

std::string experiment_import_text(const ExperimentData& data, const ExperimentImported& imported);
// Schema joulemap.import/1, as of recordings; members that only those have are missing.
std::string experiment_import_json(const ExperimentData& data, const ExperimentImported& imported);

}  // namespace joulemap::report
