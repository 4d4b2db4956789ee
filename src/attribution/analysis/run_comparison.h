// SPDX-License-Identifier: Apache-2.0
//
// Two programs, entry by entry, from one recording of each or several. Entries of the same path on the same device are
// compared, per step where all recordings have steps.
//
// What is noise: runs of the same program differ, by a standard deviation that repeated recordings show and a prior
// states where there are none (statistics/run_variation.h); and each recording knows its own energy only so well, by
// its sensors and by the variation of its steps (steady_state.h). The verdict on the total is a t interval over runs.
// Entries are many: theirs allow for that by Benjamini and Hochberg's false discovery rate, and their intervals are of
// the level that goes with it (Benjamini and Yekutieli 2005), so that an entry is changed where its interval does not
// contain 0. Pure.
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

// Runs of one program on one machine, one after another, in steady state. H200: networks that keep the GPU busy,
// measured again in the same session, have a median standard deviation of 2.0 % in energy (data/h200/networks.csv.gz,
// 22 settings above 300 W), and the same UNet recorded twice differed by 2.6 %. Settings differ widely in how much they
// vary, so the prior is worth few degrees of freedom. bench/h200/diff_false_positives.py checks both.
inline constexpr statistics::VariationPrior kRunVariation{0.02, 4};

struct ComparisonQuery {
  std::string per = {};                  // empty: samples, steps, epochs or the run, the first that all have
  std::optional<double> fail_over = {};  // a share
  std::optional<double> run_sd = {};     // instead of the prior's
  bool whole_run = false;                // start-up, warm-up and shutdown count, too
};

// Of a recording.
struct RunReports {
  ReportResult rows;                       // at the level that is compared; of the steady state where `is_steady`
  std::vector<StepEnergy> steps;           // of the whole run
  std::optional<SteadyState> steady = {};  // of these
  bool is_steady = false;
  double rows_steps = 0;  // where `is_steady`: as many steps are in the rows
  double elapsed_s = 0;   // of the whole run, and
  std::optional<double> energy_j = {};
};

// Whether steady states are to be compared: per step or sample, and all recordings have one.
bool compares_steady_states(std::span<const std::optional<SteadyState>> steady, const ComparisonQuery& query);

// At least one recording on either side. Fails where some were measured and others only estimated, and where a unit is
// asked for that one does not have.
Result<RunDifference> compare_runs(std::span<const RunReports> a, std::span<const RunReports> b,
                                   const ComparisonQuery& query);

}  // namespace joulemap::attribution
