// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/analyze.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "experiment/analysis/cell_functions.h"
#include "experiment/analysis/comparisons.h"
#include "experiment/analysis/effect_verdict.h"
#include "experiment/analysis/epoch_means.h"
#include "experiment/analysis/experiment_table.h"
#include "experiment/analysis/level_correlations.h"
#include "experiment/analysis/main_effects.h"
#include "experiment/analysis/parallel_for.h"
#include "experiment/analysis/pareto.h"
#include "experiment/analysis/validity.h"
#include "experiment/analysis/verdict.h"
#include "statistics/bootstrap.h"
#include "statistics/series.h"

namespace joulemap::experiment {
namespace {

double sample_standard_deviation(const std::vector<double>& values, double mean) {
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::optional<MeasureSummary> summarize_measure(std::vector<double> values,
                                                const statistics::BootstrapOptions& options) {
  if (values.empty()) return std::nullopt;
  MeasureSummary summary;
  summary.mean = statistics::mean_of(values);
  summary.median = statistics::median_of(values);
  if (values.size() > 1) {
    if (const auto interval = statistics::bootstrap_mean(values, options)) {
      summary.low = interval->low;
      summary.high = interval->high;
    }
    summary.standard_deviation = sample_standard_deviation(values, summary.mean);
    summary.outliers = statistics::find_modified_z_outliers(values);
  }
  summary.values = std::move(values);
  return summary;
}

// Means over the rows of a cell: of the first epoch, and of the later epochs. Energies come only from rows that match
// the energy basis. None if no row has epochs.
std::optional<EpochSummary> summarize_epochs(const ExperimentData& data, const ExperimentTable& table,
                                             const CellRows& cell) {
  struct MeanAccumulator {
    double sum = 0;
    std::size_t count = 0;
    void add(std::optional<double> value) {
      if (!value) return;
      sum += *value;
      ++count;
    }
    std::optional<double> mean() const {
      return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
    }
  };
  EpochSummary summary;
  MeanAccumulator first_epoch_j, later_epochs_j, first_epoch_s, later_epochs_s;
  for (const std::size_t index : cell.done_rows) {
    const std::vector<EpochResult>& epochs = data.rows[index].epochs;
    summary.epochs = std::max(summary.epochs, epochs.size());
    const bool has_energies = has_domains_of_basis(table.energy_basis, data.rows[index]);
    for (std::size_t i = 0; i < epochs.size(); ++i) {
      if (has_energies) (i == 0 ? first_epoch_j : later_epochs_j).add(epochs[i].energy_j);
      (i == 0 ? first_epoch_s : later_epochs_s).add(epochs[i].elapsed_s);
    }
  }
  if (summary.epochs == 0) return std::nullopt;
  summary.first_j = first_epoch_j.mean();
  summary.later_j = later_epochs_j.mean();
  summary.first_s = first_epoch_s.mean();
  summary.later_s = later_epochs_s.mean();
  return summary;
}

AnalysisCell analyze_cell(const ExperimentData& data, const ExperimentTable& table, std::size_t index, double alpha,
                          const AnalysisOptions& options, const std::vector<EpochColumn>& columns) {
  const CellRows& rows = table.cells[index];
  AnalysisCell cell;
  cell.levels = rows.level_indices;
  cell.rows = rows.planned_row_count;
  cell.n = rows.done_rows.size();
  for (std::size_t measure = 0; measure < table.measures.size(); ++measure) {
    const std::uint64_t seed = statistics::bootstrap_cell_seed(data.seed, index * table.measures.size() + measure);
    cell.measures.push_back(
        summarize_measure(table.measure_values_of_cell(rows, measure), {1 - alpha, options.resample_count, seed}));
  }
  cell.epochs = summarize_epochs(data, table, rows);
  cell.epoch_means = epoch_means(data, table, rows, columns);
  cell.functions = compute_function_means(data, rows, table.energy_basis);
  cell.flags = compute_cell_flags(data, table, rows, cell.measures, alpha);
  return cell;
}

Result<std::vector<std::size_t>> find_compared_factors(const ExperimentData& data, const AnalysisOptions& options) {
  std::vector<std::size_t> factors;
  for (std::size_t i = 0; i < data.factors.size(); ++i) {
    if (options.compared_factors.empty() && data.factors[i].is_compared) factors.push_back(i);
  }
  for (const std::string& name : options.compared_factors) {
    const auto matching_factor = std::find_if(data.factors.begin(), data.factors.end(),
                                              [&](const ExperimentFactor& factor) { return factor.name == name; });
    if (matching_factor == data.factors.end()) {
      std::string factor_names;
      for (const ExperimentFactor& factor : data.factors)
        factor_names += (factor_names.empty() ? "" : ", ") + factor.name;
      return Error{ErrorCode::usage, fmt::format("the experiment has no factor {}", joulemap::quoted(name)),
                   factor_names};
    }
    factors.push_back(static_cast<std::size_t>(matching_factor - data.factors.begin()));
  }
  return factors;
}

}  // namespace

Result<AnalysisResult> analyze(const ExperimentData& data, const AnalysisOptions& options) {
  const double alpha = options.significance_level.value_or(data.alpha);
  if (!(alpha > 0 && alpha < 1)) return Error{ErrorCode::usage, "alpha must lie between 0 and 1", "--alpha 0.05"};
  Result<std::vector<std::size_t>> factors = find_compared_factors(data, options);
  if (!factors) return std::move(factors).error();
  Result<ExperimentTable> table = make_experiment_table(data, options.measure_names);
  if (!table) return std::move(table).error();
  const bool has_rows = std::any_of(table->cells.begin(), table->cells.end(),
                                    [](const CellRows& cell) { return !cell.done_rows.empty(); });
  if (!has_rows) {
    return Error{ErrorCode::not_found, fmt::format("no row of {} is done", joulemap::quoted(data.name)),
                 "joulemap experiment run"};
  }
  AnalysisResult result;
  result.name = data.name;
  result.factors = data.factors;
  for (ExperimentFactor& factor : result.factors) factor.is_compared = false;
  for (const std::size_t factor : *factors) result.factors[factor].is_compared = true;
  result.measures = table->measures;
  result.is_blocked = data.is_blocked;
  result.alpha = alpha;
  result.adjustment = statistics::name_of(options.adjustment);
  result.seed = data.seed;
  result.resamples = options.resample_count;
  result.epoch_columns = epoch_columns(data);
  result.cells.resize(table->cells.size());
  parallel_for(result.cells.size(), options.thread_count, [&](std::size_t i) {
    result.cells[i] = analyze_cell(data, *table, i, alpha, options, result.epoch_columns);
  });
  result.comparisons = compare_levels(data, *table, {alpha, options.adjustment, *factors, options.thread_count});
  FactorEffects effects =
      analyze_factor_effects(data, *table, {alpha, options.adjustment, *factors, options.thread_count});
  result.main_effects = std::move(effects.main_effects);
  result.interactions = std::move(effects.interactions);
  result.associations = compute_associations(*table, options.thread_count);
  result.correlations = level_correlations(data, *table, *factors);
  result.pareto = find_pareto_sets(data, *table, {*factors, options.resample_count, data.seed, options.thread_count});
  result.flags = experiment_flags(data, *table, result);
  result.row_flags = compute_row_flags(data, *table, result.cells);
  for (Comparison& comparison : result.comparisons) comparison.verdict = verdict_sentence(comparison, result);
  for (MainEffect& effect : result.main_effects) effect.verdict = verdict_sentence(effect, result);
  for (Interaction& interaction : result.interactions) interaction.verdict = verdict_sentence(interaction, result);
  result.methods = methods_paragraph(result);
  result.diagnostics.add_all(data.diagnostics);
  return result;
}

}  // namespace joulemap::experiment
