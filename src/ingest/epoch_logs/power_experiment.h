// SPDX-License-Identifier: Apache-2.0
//
// Runs that somebody logged with nvidia-smi (power_csv/power_log.h), and what their trainings wrote at the end of each epoch
// (epoch_log.h), as an experiment: a row for each power log, factors from the names of the files. Energy is the integral of
// power over the real times of samples; an epoch's lies between two ends, the first begins with the log. Metrics are those
// of the last epoch; utilisation (mean), memory and temperature (most) stand beside. Joules, seconds. Reads files.
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
  std::vector<std::string> inputs;  // logs of power, or folders, which are searched
  // Of names: "run{run}-{framework}-{dataset}-ENERGY.csv". A field "run", "rep" or "repetition" is the repetition,
  // the others are factors. Empty: all logs are repetitions of one cell.
  std::string pattern;
  // Of logs of epochs: a file, or the pattern of its name, filled in with the fields of the power log's. May be empty.
  std::string epochs;
  std::optional<std::int64_t> utc_offset_s;
};

// Fails when nothing matches, or a file cannot be read as what it is said to be.
Result<ExperimentData> read_power_experiment(const PowerExperimentOptions& options);

}  // namespace joulemap::ingest
