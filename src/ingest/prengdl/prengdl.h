// SPDX-License-Identifier: Apache-2.0
//
// Reads the published measurements of PrEnGDL (Georgiou et al., ICSE 2022) into an experiment: a folder with
// MODEL_FRAMEWORK_perf_REP.txt (what `perf stat -a -e power/energy-pkg/,power/energy-ram/` printed) and
// MODEL_FRAMEWORK_nvidia_smi_REP.txt (power.draw once a second, without times) for each repetition, in folders
// measurements_train and measurements_inference; other folders' names become phases too. Whole files are held one at a time.
//
// - Energy of the GPU is the mean of its samples times the time that perf tells: samples are said to be a second apart, and
//   are not. What was published, their plain sum, stands beside it as a check.
// - Repetitions are blocks by number alone; nothing paired them, so the design is not blocked.
// - A file that is missing or makes no sense leaves its row without that value, and a diagnostic.
//
// Joules, seconds. Reads files; no other state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/experiment_data.h"

namespace joulemap::ingest {

struct PerfEnergies {
  std::optional<double> package_j;
  std::optional<double> dram_j;
  std::optional<double> elapsed_s;
};
// Numbers of any locale: "188,753.25", "188.753,25".
PerfEnergies parse_perf_energies(std::string_view text);

struct PowerSamples {
  std::vector<double> watts;
  std::size_t unreadable = 0;  // lines like "[N/A]"
};
PowerSamples parse_power_samples(std::string_view text);

// Fails when there is no such folder, or no such file in it.
Result<ExperimentData> read_prengdl(const std::string& folder);

}  // namespace joulemap::ingest
