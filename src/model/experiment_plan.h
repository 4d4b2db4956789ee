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

// Extrapolated from completed rows of the pilot or of the experiment itself.
struct ExperimentForecast {
  std::size_t completed_rows = 0;  // number of completed rows
  std::size_t rows = 0;            // number of rows not done, which the forecast covers
  double time_s = 0;               // includes baseline, warm-up and the pauses between rows
  std::optional<double> energy_j;
  std::optional<Provenance> provenance;  // of the energies it is based on
  std::optional<double> co2_g;
  std::optional<double> price;
  std::string currency;
};

// What follows from the design before anything runs.
struct PlanStatistics {
  std::size_t repetitions = 0;
  bool paired = false;          // paired by block: signed-rank test; else rank-sum test
  std::size_t comparisons = 0;  // pairs of cells that differ in one factor, for one measure
  double alpha = 0.05;
  double min_p_value = 1;                   // smallest p value the test can return, however large the difference
  bool can_be_significant = false;          // min_p_value x comparisons <= alpha: a result can survive the adjustment
  std::size_t needed_repetitions = 0;       // repetitions needed for can_be_significant
  std::size_t measures = 2;                 // minimum: energy, time and the metrics; each domain adds one
  std::size_t needed_for_all_measures = 0;  // repetitions needed when all measures form one family, as in `analyze`
  std::optional<double> noise;              // of completed rows: standard deviation within cells, as a fraction
  std::optional<double> detectable_difference_sd;  // detectable difference at 90 % power, in units of one row's noise
};

struct ExperimentPlanRow {
  std::size_t number = 0;
  std::size_t block = 0;
  std::vector<std::size_t> levels;
  RowState state = RowState::todo;
  std::uint32_t attempts = 0;
  std::string node;
  std::optional<double> elapsed_s;
  std::optional<double> energy_j;  // measured when available, else estimated
  std::optional<Provenance> provenance;
};

// A cluster job that runs rows.
struct ExperimentJob {
  std::string id;     // "1234_7"
  std::string state;  // in the cluster's terms: "PENDING", "RUNNING"
  std::string node;
  std::string blocks;  // "7"
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

  std::size_t count(RowState state) const {
    std::size_t rows_in_state = 0;
    for (const ExperimentPlanRow& row : rows) rows_in_state += row.state == state ? 1 : 0;
    return rows_in_state;
  }
};

}  // namespace joulemap
