// SPDX-License-Identifier: Apache-2.0
//
// ExperimentData: a designed experiment and its results, from `experiment run`, a cluster, or files of other tools
// (`import prengdl`, `import nvidia-smi`). The runner and the importers write a folder (docs/how-to/experiments.md),
// which `experiment/run/experiment_folder.h` reads into ExperimentData, the only input of the analysis. Plain data;
// seconds, joules, Unix nanoseconds.
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
#include "model/gauge_values.h"

namespace joulemap {

struct ExperimentFactor {
  std::string name;                 // "framework"
  std::vector<std::string> levels;  // in plan order: "pytorch", "tensorflow"
  // False: the levels are conditions (models, data sets) under which other factors are compared.
  bool is_compared = true;
};

// A number that rows report besides energy and time.
struct ExperimentMetric {
  std::string name;  // "accuracy"
  std::string unit;
  bool more_is_better = false;
  // False (utilisation, temperature): displayed, but neither compared nor a Pareto objective unless requested.
  bool is_compared = true;
};

struct EpochResult {
  double start_s = 0;  // after the start of the row
  double elapsed_s = 0;
  std::optional<double> energy_j;              // between the epoch marks, over the domains of the row's energy
  std::vector<std::optional<double>> metrics;  // same order as ExperimentData::metrics
  GaugeValues gauges = {};
};

// A power or gauge of a run over time: means over the slices of RowSeries.
struct SeriesChannel {
  std::string name;  // of a domain ("gpu0", in W) or of kGauges
  std::string unit;
  std::vector<std::optional<double>> values;
};
// What plots show of a run: power of its counted domains, then gauges. Slices are equal and begin with the row.
struct RowSeries {
  double slice_s = 0;
  std::vector<SeriesChannel> channels;  // all of the same length, at most kMaxSeriesSlices
};
inline constexpr std::size_t kMaxSeriesSlices = 300;

enum class ExperimentRowState { todo, running, done, failed };
constexpr std::string_view name_of(ExperimentRowState state) {
  return std::array<std::string_view, 4>{"todo", "running", "done", "failed"}[static_cast<std::size_t>(state)];
}

// One row of the run table: one execution of one cell. A failed row can be run again; the values are those of the last
// attempt.
struct ExperimentRow {
  std::size_t number = 0;           // index in the run table, from 0
  std::vector<std::size_t> levels;  // one index into each factor's levels
  std::size_t block = 0;            // index of its repetition of all cells
  std::string node;                 // host that ran it; empty when unknown
  ExperimentRowState state = ExperimentRowState::todo;
  std::uint32_t attempts = 0;
  std::optional<int> exit_code;
  std::string error;                          // why it failed; empty if it did not
  std::optional<std::int64_t> start_unix_ns;  // rows are in execution order by this, or by `number` when it is unknown
  std::optional<double> elapsed_s;
  std::vector<DomainEnergy> domains;           // total_energy sums them by provenance
  PowerTotals baseline;                        // idle power of the counted domains before the experiment
  PowerTotals first;                           // power just before the row began; above the baseline: too short a pause
  std::optional<double> cpu_steal_share;       // fraction of CPU time taken by the hypervisor
  std::optional<double> throttled_share;       // fraction of GPU readings with clocks limited by heat or power
  std::vector<std::optional<double>> metrics;  // same order as ExperimentData::metrics
  std::vector<EpochResult> epochs;
  RowSeries series;
  std::vector<FunctionResult> functions;  // those with the most energy on each device; empty without a trace
  Diagnostics diagnostics;                // of this row's measurement
};

struct ExperimentData {
  std::string name;
  std::vector<ExperimentFactor> factors;
  std::vector<ExperimentMetric> metrics;
  bool is_blocked = false;  // each block contains every cell once: the analysis pairs rows of one block
  std::uint64_t seed = 0;
  double alpha = 0.05;
  std::vector<ExperimentRow> rows;
  Diagnostics diagnostics;  // of the folder: damaged rows, notes of the importer
};

}  // namespace joulemap
