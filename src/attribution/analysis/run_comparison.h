// SPDX-License-Identifier: Apache-2.0
//
// Compares two programs entry by entry, from one or more recordings of each. Matches entries of equal path and device,
// per step if all recordings have steps.
//
// Noise: runs of the same program differ by a standard deviation that is estimated from repeated recordings and a prior
// (statistics/run_variation.h). The energy of each recording is also uncertain, by its sensors and by
// the variation of its steps (steady_state.h). The verdict on the total is a t interval over runs. Entries are many:
// their verdicts control the false discovery rate (Benjamini and Hochberg), and their intervals have the level that
// goes with it (Benjamini and Yekutieli 2005), so that an entry is changed if its interval does not contain 0. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/analysis/steady_state.h"
#include "base/result.h"
#include "model/report_result.h"
#include "model/run_difference.h"
#include "statistics/run_variation.h"

namespace joulemap::attribution {

// Relative standard deviation between sequential runs of one program on one machine, in steady state. H200: networks
// that keep the GPU busy, measured again in the same session, have a median standard deviation of 2.0 % in energy
// (data/h200/networks.csv.gz, 22 settings above 300 W), and the same UNet recorded twice differed by 2.6 %. The
// standard deviation differs widely between settings, so the prior has few degrees of freedom.
// bench/h200/diff_false_positives.py checks both.
inline constexpr statistics::VariationPrior kRunVariationPrior{0.02, 4};

struct ComparisonQuery {
  std::string per = {};                          // empty: samples, steps, epochs or the run, the first that all have
  std::optional<double> failure_threshold = {};  // relative increase of the total above which the comparison fails
  std::optional<double> run_sd = {};             // replaces the relative standard deviation of the prior
  bool whole_run = false;                        // include start-up, warm-up and shutdown
};

// Results of one recording.
struct RunReports {
  ReportResult rows;                             // at the compared level; of the steady state if `is_steady`
  std::vector<StepEnergy> steps;                 // of the whole run, with its evaluation steps
  std::optional<SteadyState> steady_state = {};  // of `steps`
  bool is_steady = false;
  double steps_in_rows = 0;  // steps in the rows, if `is_steady`
  double elapsed_s = 0;      // of the whole run, as is energy_j; both without probing
  std::optional<double> energy_j = {};
  double whole_background_j = 0;  // energy of other processes in the whole run, without probing
  double background_j = 0;        // energy of other processes in the time of `rows`
  double replayed_modules_j = 0;  // energy of --probe in the time of `rows`
};

// Whether to compare steady states: if all recordings have one, and the query does not ask for whole runs or epochs.
bool can_compare_steady_states(std::span<const std::optional<SteadyState>> steady_state, const ComparisonQuery& query);

// Needs at least one recording on each side. Fails if some were measured and others only estimated, or if a recording
// lacks the requested unit.
Result<RunDifference> compare_runs(std::span<const RunReports> a, std::span<const RunReports> b,
                                   const ComparisonQuery& query);

}  // namespace joulemap::attribution
