// SPDX-License-Identifier: Apache-2.0
//
// ExperimentTable: the rows of an experiment as numbers, grouped by cell; the input of every part of the analysis.
// Domains of one kind form one measure: "package-0" and "package-1" are summed to "package". make_experiment_table
// builds it once; it has no pointers into the data. Pure; joules, seconds.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "experiment/analysis/energy_basis.h"
#include "model/analysis_result.h"
#include "model/experiment_data.h"

namespace joulemap::experiment {

struct CellRows {
  std::vector<std::size_t> level_indices;  // one index into each factor's levels
  std::vector<std::size_t> done_rows;      // rows that are done, as indices into ExperimentData::rows, in run order
  std::size_t planned_row_count = 0;
  std::size_t failed_row_count = 0;
};

struct ExperimentTable {
  std::vector<Measure> measures;
  EnergyBasis energy_basis;     // basis of all domains, even if energy is not a measure
  std::vector<CellRows> cells;  // sorted by levels
  std::vector<std::vector<std::optional<double>>> values_by_row;  // [row of the data][measure]

  // Values of the rows of a cell that have one, in run order.
  std::vector<double> measure_values_of_cell(const CellRows& cell, std::size_t measure) const;
  const CellRows* find_cell(std::span<const std::size_t> levels) const;
  std::optional<std::size_t> find_cell_index(std::span<const std::size_t> levels) const;
};

// `measure_names`: names of measures; empty: all. Fails on a name that no row has.
Result<ExperimentTable> make_experiment_table(const ExperimentData& data, std::span<const std::string> measure_names);

// Indices of all rows in run order: by start time if every row has one, else by row number.
std::vector<std::size_t> rows_in_run_order(const ExperimentData& data);

// "phase train, model gnmt, framework PyTorch"; empty levels are left out.
std::string factor_levels_text(const std::vector<ExperimentFactor>& factors,
                               std::span<const std::optional<std::size_t>> levels);
std::string factor_levels_text(const std::vector<ExperimentFactor>& factors, std::span<const std::size_t> levels);

}  // namespace joulemap::experiment
