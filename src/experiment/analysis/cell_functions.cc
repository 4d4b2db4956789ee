// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/cell_functions.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace joulemap::experiment {
namespace {

// Mean over the rows that have a value.
struct RunningMean {
  double sum = 0;
  std::size_t rows = 0;

  void add(double value) {
    sum += value;
    ++rows;
  }
  std::optional<double> mean() const {
    return rows > 0 ? std::optional(sum / static_cast<double>(rows)) : std::nullopt;
  }
};

struct FunctionSums {
  RunningMean time_s;
  RunningMean count;
  RunningMean energy_j;
  RunningMean cumulative_s;
  double energy_of_rows_j = 0;  // total energy of the rows in which the function's energy is known
  double inclusive_energy_j = 0;
  AmountByCause cause_times_s;
  std::vector<EnergyCauseClass> name_inferred_causes;  // cause classes derived from the function name
};

// `row_j`: none if the row's energies do not match the energy basis.
void add_function_result(FunctionSums& sums, const FunctionResult& function, const std::optional<double>& row_j) {
  sums.time_s.add(function.time_s);
  if (function.count) sums.count.add(static_cast<double>(*function.count));
  if (function.cumulative_s) sums.cumulative_s.add(*function.cumulative_s);
  if (function.energy_j && row_j) sums.energy_j.add(*function.energy_j);
  if (function.energy_j && row_j && *row_j > 0) {
    sums.inclusive_energy_j += *function.energy_j;
    sums.energy_of_rows_j += *row_j;
  }
  if (!function.cause) return;
  sums.cause_times_s.add(function.cause->times_s);
  if (function.cause->basis == CauseBasis::name) sums.name_inferred_causes.push_back(function.cause->largest_class);
}

std::optional<EnergyCause> largest_energy_cause(const FunctionSums& sums) {
  if (sums.cause_times_s.sum() <= 0) return std::nullopt;
  EnergyCause cause{sums.cause_times_s.largest_class(), CauseBasis::ledger};
  if (std::ranges::find(sums.name_inferred_causes, cause.largest_class) != sums.name_inferred_causes.end())
    cause.basis = CauseBasis::name;
  cause.times_s.add(sums.cause_times_s, 1 / static_cast<double>(sums.time_s.rows));
  return cause;
}

}  // namespace

std::vector<CellFunctionMean> compute_function_means(const ExperimentData& data, const CellRows& cell,
                                                     const EnergyBasis& energy) {
  std::map<std::pair<std::string, std::string>, FunctionSums> sums_by_function;  // by (name, device)
  for (const std::size_t index : cell.done_rows) {
    const ExperimentRow& row = data.rows[index];
    const std::optional<double> row_j =
        has_domains_of_basis(energy, row) ? comparable_energy_j(energy, row) : std::nullopt;
    for (const FunctionResult& function : row.functions) {
      add_function_result(sums_by_function[{function.name, function.device}], function, row_j);
    }
  }
  std::vector<CellFunctionMean> functions;
  for (const auto& [key, sums] : sums_by_function) {
    CellFunctionMean function{key.first, key.second, sums.time_s.rows, sums.count.mean()};
    function.time_s = sums.time_s.mean().value_or(0);
    function.energy_j = sums.energy_j.mean();
    if (sums.energy_of_rows_j > 0) function.share = sums.inclusive_energy_j / sums.energy_of_rows_j;
    function.cause = largest_energy_cause(sums);
    function.cumulative_s = sums.cumulative_s.mean();
    functions.push_back(std::move(function));
  }
  std::ranges::stable_sort(functions, [](const CellFunctionMean& a, const CellFunctionMean& b) {
    return std::pair(a.energy_j.value_or(0), a.time_s) > std::pair(b.energy_j.value_or(0), b.time_s);
  });
  return functions;
}

}  // namespace joulemap::experiment
