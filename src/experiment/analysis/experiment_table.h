// SPDX-License-Identifier: Apache-2.0
//
// ExperimentTable: the rows of an experiment as numbers, by cell: what every part of the analysis reads. Domains of one kind
// are one measure ("package-0" and "package-1" are "package"), so that tests ask what people ask. Made once by table_of; it
// holds no pointers into the data. Pure; joules, seconds.
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
  std::vector<std::size_t> levels;  // one index into each factor's levels
  std::vector<std::size_t> rows;    // done, into ExperimentData::rows, in the order in which they ran
  std::size_t planned = 0;
  std::size_t failed = 0;
};

struct ExperimentTable {
  std::vector<Measure> measures;
  EnergyBasis energy;  // of all domains, whether or not it is among the measures
  std::vector<CellRows> cells;                             // in the order of their levels
  std::vector<std::vector<std::optional<double>>> values;  // by row of the data, then by measure

  // Of the rows of a cell that have one, in the order in which they ran.
  std::vector<double> values_of(const CellRows& cell, std::size_t measure) const;
  const CellRows* cell_at(std::span<const std::size_t> levels) const;
  std::optional<std::size_t> index_of_cell(std::span<const std::size_t> levels) const;
};

// `wanted`: names of measures; none: all. Fails on a name that no row has.
Result<ExperimentTable> table_of(const ExperimentData& data, std::span<const std::string> wanted);

// The indices of all rows in the order in which they ran: by their start where all tell it, else by number.
std::vector<std::size_t> order_of_run(const ExperimentData& data);

// "phase train, model gnmt, framework PyTorch"; levels that are empty are left out.
std::string levels_text(const std::vector<ExperimentFactor>& factors,
                        std::span<const std::optional<std::size_t>> levels);
std::string levels_text(const std::vector<ExperimentFactor>& factors, std::span<const std::size_t> levels);

}  // namespace joulemap::experiment
