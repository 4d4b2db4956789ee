// SPDX-License-Identifier: Apache-2.0
//
// Reads the published measurements of PrEnGDL (Georgiou et al., ICSE 2022) as an experiment. Subfolders
// measurements_train and measurements_inference contain two files per repetition: MODEL_FRAMEWORK_perf_REP.txt, the
// output of `perf stat -a -e power/energy-pkg/,power/energy-ram/`, and MODEL_FRAMEWORK_nvidia_smi_REP.txt, power.draw
// once a second, without times. Any subfolder measurements_NAME becomes the phase NAME. One file is in memory at a
// time.
//
// - GPU energy is the mean of the power samples times the elapsed time of perf: the samples are documented as one
//   second apart, but are not. Their plain sum, as published, is added as a check.
// - The number of a repetition is stored as its block, but the study did not run blocks, so the design counts as
//   unblocked.
// - A missing or invalid file leaves its row without that value and adds a diagnostic.
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
// Parses the output of perf stat, with numbers of any locale: "188,753.25", "188.753,25". Missing values stay empty.
PerfEnergies parse_perf_energies(std::string_view text);

struct PowerSamples {
  std::vector<double> watts;
  std::size_t unreadable_line_count = 0;  // count of lines like "[N/A]"
};
PowerSamples parse_power_samples(std::string_view text);

// Fails if the folder does not exist or contains no such file.
Result<ExperimentData> read_prengdl(const std::string& folder);

}  // namespace joulemap::ingest
