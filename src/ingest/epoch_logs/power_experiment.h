// SPDX-License-Identifier: Apache-2.0
//
// Reads runs logged with nvidia-smi (power_csv/power_log.h) and their epoch logs (epoch_log.h) as an experiment: one
// row per power log, factors from the file names. Energy is the integral of power over the actual sample times. An
// epoch lies between two epoch ends; the first begins with the power log. Metrics of a row are those of its last epoch,
// and of gpu0 the mean utilisation, maximum memory and maximum temperature. Joules, seconds. Reads files.
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
  // Epoch log of a power log: a path, or a pattern with the same fields for a file beside the power log. Empty: none.
  std::string epoch_log_pattern;
  std::optional<std::int64_t> utc_offset_s;
};

// Fails if no file matches, a power log cannot be read or has no power samples, or an epoch log is missing while
// `pattern` is empty. With a pattern, a missing epoch log is a diagnostic of its row. A power log of unknown format
// becomes a failed row.
Result<ExperimentData> read_power_experiment(const PowerExperimentOptions& options);

}  // namespace joulemap::ingest
