// SPDX-License-Identifier: Apache-2.0
//
// The part of `joulemap import` that writes an experiment instead of a recording: from the published files of PrEnGDL,
// from logs of nvidia-smi with a table of epoch end times, or from profiles of cProfile. Main thread.
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
  std::vector<std::string> input_paths;
  std::string file_name_pattern;
  std::string epoch_log_pattern;
  std::optional<std::int64_t> utc_offset_s;
  std::string output_folder;  // experiment folder to create
  bool as_json = false;
};

// Returns joulemap's exit code.
int run_experiment_import(const ExperimentImportOptions& import);

}  // namespace joulemap::cli
