// SPDX-License-Identifier: Apache-2.0
//
// ExperimentPlan: what `joulemap experiment plan` and `status` tell: the rows, what they will cost, and what statistics can
// and cannot show with so many. Plain data; seconds, joules, grams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "model/experiment_data.h"

namespace joulemap {

// From rows that have run, of the pilot or of the experiment itself.
struct ExperimentForecast {
  std::size_t based_on = 0;  // rows
  std::size_t rows = 0;      // that it is for: all that are not done
  double time_s = 0;         // with baseline, warm-up and the pauses between
  std::optional<double> energy_j;
  std::optional<Provenance> provenance;  // of the energies it rests on
  std::optional<double> co2_g;
  std::optional<double> price;
  std::string currency;
};

// What can be known before anything is run.
struct PlanStatistics {
  std::size_t repetitions = 0;
  bool paired = false;          // by blocks: the signed-rank test; else the rank-sum test
  std::size_t comparisons = 0;  // of two cells that differ in one factor, of one measure
  double alpha = 0.05;
  double least_p = 1;                          // that the test can give, however large the difference
  bool can_show = false;                       // least_p x comparisons <= alpha: something can survive the adjustment
  std::size_t needed_repetitions = 0;          // for that
  std::size_t measures = 2;                    // at least: energy, time and the metrics; each domain is one more
  std::size_t needed_for_all = 0;              // repetitions, where all measures are one family, as `analyze` has it
  std::optional<double> noise;                 // of rows that have run: standard deviation within cells, as a share
  std::optional<double> difference_in_noises;  // found in nine of ten experiments, in units of one row's noise
};

struct ExperimentPlanRow {
  std::size_t number = 0;
  std::size_t block = 0;
  std::vector<std::size_t> levels;
  RowState state = RowState::todo;
  std::uint32_t attempts = 0;
  std::string node;
  std::optional<double> elapsed_s;
  std::optional<double> energy_j;  // measured where something was, else estimated
  std::optional<Provenance> provenance;
};

// A job of a cluster that runs rows.
struct ExperimentJob {
  std::string id;     // "1234_7"
  std::string state;  // as the cluster calls it: "PENDING", "RUNNING"
  std::string node;
  std::string blocks;  // "7"
};

struct ExperimentPlan {
  std::string name;
  std::string folder;  // empty where it is only a plan
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
