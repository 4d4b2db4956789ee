// SPDX-License-Identifier: Apache-2.0
//
// The part of `joulemap import` whose result is an experiment, not a recording: PrEnGDL's published files, and logs of
// nvidia-smi with a table of the ends of epochs. Main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace joulemap::cli {

inline constexpr std::string_view kPrengdlFormat = "prengdl";

struct ExperimentImportOptions {
  std::string format;
  std::vector<std::string> inputs;
  std::string pattern;
  std::string epochs;
  std::optional<std::int64_t> utc_offset_s;
  std::string output;  // the folder of the experiment
  bool json = false;
};

// Returns the exit code.
int run_experiment_import(const ExperimentImportOptions& import);

}  // namespace joulemap::cli
