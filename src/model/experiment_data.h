// SPDX-License-Identifier: Apache-2.0
//
// ExperimentData: a designed experiment and what came out of it, wherever it came from: our own runner, a cluster, or
// the published files of others (`import prengdl`, `import nvidia-smi`). The runner and the importers write a folder
// (docs/experiment.md), `experiment/run/experiment_folder.h` reads it into this, and every analysis is a pure function of
// it. Plain data; seconds, joules, Unix nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"
#include "model/domain_energy.h"
#include "model/energy_totals.h"
#include "model/function_result.h"

namespace joulemap {

struct ExperimentFactor {
  std::string name;                 // "framework"
  std::vector<std::string> levels;  // in the order of the plan: "pytorch", "tensorflow"
  // False where levels are what was compared on (models, data), not what was compared: they are not set against each other.
  bool compared = true;
};

// A number that rows tell besides energy and time.
struct ExperimentMetric {
  std::string name;  // "accuracy"
  std::string unit;
  bool more_is_better = false;
  // False: told beside (utilisation, temperature), neither compared nor weighed against energy unless asked for.
  bool weighed = true;
};

struct EpochResult {
  double start_s = 0;  // after the row's start
  double elapsed_s = 0;
  std::optional<double> energy_j;  // of the domains that the row shows (shown_energy), between the marks
  std::vector<std::optional<double>> metrics;  // as in ExperimentData::metrics; of the epoch
};

enum class RowState { todo, running, done, failed };
constexpr std::string_view name_of(RowState state) {
  return std::array<std::string_view, 4>{"todo", "running", "done", "failed"}[static_cast<std::size_t>(state)];
}

// One row of the run table: one execution of one cell. Failed attempts are kept on disk and counted; the values are of the
// attempt that counts, which is the last.
struct ExperimentRow {
  std::size_t number = 0;           // in the run table, from 0
  std::vector<std::size_t> levels;  // one index into each factor's levels
  std::size_t block = 0;            // the repetition it belongs to
  std::string node;                 // where it ran; empty where not known
  RowState state = RowState::todo;
  std::uint32_t attempts = 0;
  std::optional<int> exit_code;
  std::optional<std::int64_t> start_unix_ns;  // rows in the order in which they ran: sort by this, else by number
  std::optional<double> elapsed_s;
  std::vector<DomainEnergy> domains;  // total_energy adds them, by provenance
  PowerTotals baseline;                        // idle power of the counted domains before the experiment
  PowerTotals first;                           // when the row began: far above the baseline after too short a pause
  std::optional<double> stolen_share;          // CPU time that a hypervisor took
  std::optional<double> throttled_share;       // of the time, clocks held down by heat or power
  std::vector<std::optional<double>> metrics;  // as in ExperimentData::metrics
  std::vector<EpochResult> epochs;
  std::vector<FunctionResult> functions;  // those that drew the most of each device; none without a trace
  Diagnostics diagnostics;                // of this row's measurement
};

struct ExperimentData {
  std::string name;
  std::vector<ExperimentFactor> factors;
  std::vector<ExperimentMetric> metrics;
  bool blocked = false;  // rows of one block were made to be compared: pairing them is part of the design
  std::uint64_t seed = 0;
  double alpha = 0.05;
  std::vector<ExperimentRow> rows;
  Diagnostics diagnostics;  // of the folder: damaged rows, notes of the importer
};

}  // namespace joulemap
