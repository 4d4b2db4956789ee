// SPDX-License-Identifier: Apache-2.0
//
// ExperimentPlan: the output of `joulemap experiment plan` and `status`: the rows, their forecast cost, and which
// differences this number of rows can establish. Plain data; seconds, joules, grams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "model/experiment_data.h"

namespace joulemap {

// Cost of the rows that are not done, extrapolated from completed rows of the pilot or of the experiment itself.
struct ExperimentForecast {
  std::size_t completed_rows = 0;  // number of rows that the forecast is based on
  std::size_t rows = 0;            // number of rows that are not done
  double time_s = 0;               // includes baseline, warm-up and the pauses between rows
  std::optional<double> energy_j;
  std::optional<Provenance> provenance;  // of energy_j
  std::optional<double> co2_g;
  std::optional<double> price;
  std::string currency;
};

// What the tests can show with this number of repetitions; only `noise` needs completed rows.
struct PlanStatistics {
  std::size_t repetitions = 0;
  bool paired = false;          // paired by block: signed-rank test; else rank-sum test
  std::size_t comparisons = 0;  // number of pairs of cells that differ only in one factor; the largest of all
  double alpha = 0.05;
  double min_p_value = 1;              // smallest p-value that the test can return, however large the difference
  bool can_be_significant = false;     // min_p_value * comparisons <= alpha (Bonferroni)
  std::size_t needed_repetitions = 0;  // repetitions needed for can_be_significant
  std::size_t measures = 2;            // energy, time and compared metrics; without domains, known only later
  std::size_t repetitions_for_all_measures =
      0;                        // repetitions needed when all measures form one family, as in `analyze`
  std::optional<double> noise;  // standard deviation of completed rows within cells, relative to the mean
  std::optional<double> detectable_difference_sd;  // difference detected with 90 % power, in standard deviations
};

struct ExperimentPlanRow {
  std::size_t number = 0;
  std::size_t block = 0;
  std::vector<std::size_t> levels;
  ExperimentRowState state = ExperimentRowState::todo;
  std::uint32_t attempts = 0;
  std::string node;
  std::optional<double> elapsed_s;
  std::optional<double> energy_j;  // measured when available, else estimated
  std::optional<Provenance> provenance;
  std::string error;  // why it failed; empty if it did not
};

// A cluster job that runs rows.
struct ExperimentJob {
  std::string id;     // "1234_7"
  std::string state;  // as Slurm names it: "PENDING", "RUNNING"
  std::string node;
  std::string blocks;  // blocks of the experiment that the job runs: "7"
};

struct ExperimentPlan {
  std::string name;
  std::string folder;  // empty when nothing has been written yet
  std::vector<ExperimentFactor> factors;
  std::size_t cells = 0;
  std::size_t blocks = 0;
  std::string order;
  std::uint64_t seed = 0;
  std::vector<ExperimentPlanRow> rows;
  PlanStatistics statistics;
  std::optional<ExperimentForecast> forecast;
  std::vector<ExperimentJob> jobs;
  Diagnostics diagnostics;

  std::size_t count(ExperimentRowState state) const {
    std::size_t rows_in_state = 0;
    for (const ExperimentPlanRow& row : rows) rows_in_state += row.state == state ? 1 : 0;
    return rows_in_state;
  }
};

}  // namespace joulemap
