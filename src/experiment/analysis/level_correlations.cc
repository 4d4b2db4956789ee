// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/level_correlations.h"

#include <algorithm>
#include <optional>

#include "statistics/bootstrap.h"
#include "statistics/correlation.h"

namespace joulemap::experiment {
namespace {

constexpr std::size_t kMinCellsForCorrelation = 4;

// A number of a row: a measure, or an energy divided by the time.
struct CorrelatedQuantity {
  std::size_t measure = 0;
  std::optional<std::size_t> time_measure;  // the measure to divide by

  std::optional<double> value_of_row(const ExperimentTable& table, std::size_t row) const {
    const std::optional<double> value = table.values_by_row[row][measure];
    if (!value || !time_measure) return value;
    const std::optional<double> elapsed_s = table.values_by_row[row][*time_measure];
    if (!elapsed_s || !(*elapsed_s > 0)) return std::nullopt;
    return *value / *elapsed_s;
  }
};

std::optional<double> cell_median(const ExperimentTable& table, const CellRows& cell,
                                  const CorrelatedQuantity& quantity) {
  std::vector<double> values;
  for (const std::size_t row : cell.done_rows) {
    if (const std::optional<double> value = quantity.value_of_row(table, row)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return statistics::median_of(values);
}

// The cells of one level of a factor; all cells if `factor` is none.
struct CellSelection {
  std::optional<std::size_t> factor;
  std::optional<std::size_t> level;
  bool contains(const CellRows& cell) const { return !factor || cell.level_indices[*factor] == *level; }
};

void add_correlation(std::vector<LevelCorrelation>& correlations, const ExperimentTable& table,
                     const CellSelection& cells, std::size_t energy, const CorrelatedQuantity& quantity,
                     std::string name) {
  std::vector<double> x;
  std::vector<double> y;
  for (const CellRows& cell : table.cells) {
    if (!cells.contains(cell)) continue;
    const std::optional<double> energy_j = cell_median(table, cell, {energy, std::nullopt});
    const std::optional<double> value = cell_median(table, cell, quantity);
    if (!energy_j || !value) continue;
    x.push_back(*energy_j);
    y.push_back(*value);
  }
  if (x.size() < kMinCellsForCorrelation) return;
  const std::optional<statistics::TestResult> test = statistics::spearman(x, y);
  if (test)
    correlations.push_back({cells.factor, cells.level, energy, std::move(name), x.size(), test->statistic, test->p});
}

}  // namespace

std::vector<LevelCorrelation> level_correlations(const ExperimentData& data, const ExperimentTable& table,
                                                 const std::vector<std::size_t>& factors) {
  std::vector<CellSelection> cell_selections{{}};
  for (const std::size_t factor : factors) {
    for (std::size_t level = 0; level < data.factors[factor].levels.size(); ++level)
      cell_selections.push_back({factor, level});
  }
  const auto time_measure = std::ranges::find(table.measures, MeasureKind::time, &Measure::kind);
  const std::optional<std::size_t> time =
      time_measure == table.measures.end()
          ? std::nullopt
          : std::optional(static_cast<std::size_t>(time_measure - table.measures.begin()));
  std::vector<LevelCorrelation> correlations;
  for (const CellSelection& cells : cell_selections) {
    for (std::size_t energy = 0; energy < table.measures.size(); ++energy) {
      const MeasureKind kind = table.measures[energy].kind;
      if (kind != MeasureKind::energy && kind != MeasureKind::domain) continue;
      if (time) {
        add_correlation(correlations, table, cells, energy, {*time, std::nullopt}, table.measures[*time].name);
        add_correlation(correlations, table, cells, energy, {energy, time}, "power_w");
      }
      for (std::size_t metric = 0; metric < table.measures.size(); ++metric) {
        if (table.measures[metric].kind == MeasureKind::metric)
          add_correlation(correlations, table, cells, energy, {metric, std::nullopt}, table.measures[metric].name);
      }
    }
  }
  return correlations;
}

}  // namespace joulemap::experiment
