// SPDX-License-Identifier: Apache-2.0
//
// Reads runs logged with nvidia-smi (power_csv/power_log.h) and their epoch logs (epoch_log.h) as an experiment: one
// row per power log, factors from the file names. Energy is the integral of power over the actual sample times. An
// epoch lies between two epoch ends; the first begins with the log. Metrics are those of the last epoch; utilisation
// (mean), memory and temperature (maximum) are added. Joules, seconds. Reads files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/experiment_data.h"

namespace joulemap::ingest {

struct PowerExperimentOptions {
  std::vector<std::string> inputs;  // power logs, or folders that are searched for them
  // Pattern of file names: "run{run}-{framework}-{dataset}-ENERGY.csv". A field "run", "rep" or "repetition" is the
  // repetition, the others are factors. Empty: all logs are repetitions of one cell.
  std::string pattern;
  // Epoch logs: a file, or a pattern of its name, filled in with the fields of the power log's name. May be empty.
  std::string epoch_logs;
  std::optional<std::int64_t> utc_offset_s;
};

// Fails if nothing matches, or a file does not have the expected format.
Result<ExperimentData> read_power_experiment(const PowerExperimentOptions& options);

}  // namespace joulemap::ingest
