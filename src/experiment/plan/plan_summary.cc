// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/plan_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "experiment/analysis/energy_basis.h"
#include "experiment/plan/command_template.h"
#include "statistics/sample_size.h"

namespace joulemap::experiment {
namespace {

using LevelIndices = std::vector<std::size_t>;

constexpr double kJoulesPerKilowattHour = 3.6e6;
constexpr std::size_t kMaxSimulatedRepetitions = 40;  // with more repetitions, relevant differences are detected anyway
constexpr std::size_t kSimulatedTrials = 300;
constexpr double kTargetStatisticalPower = 0.9;

struct MeanAccumulator {
  double sum = 0;
  std::size_t count = 0;
  void add(const std::optional<double>& value) {
    if (!value) return;
    sum += *value;
    ++count;
  }
  std::optional<double> value() const {
    return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
  }
};

// Smallest difference that is detected with power kTargetStatisticalPower, in standard deviations of one row.
std::optional<double> simulate_detectable_difference(statistics::Pairing pairing, std::size_t n, double alpha,
                                                     std::size_t comparisons) {
  constexpr double kSimulatedNoise = 0.01;
  if (n > kMaxSimulatedRepetitions) return std::nullopt;
  for (const double times : {0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0}) {
    const statistics::TargetDifference target{times * kSimulatedNoise, kSimulatedNoise, alpha, comparisons};
    if (statistics::simulate_test_power(pairing, n, target, 1, kSimulatedTrials) >= kTargetStatisticalPower)
      return times;
  }
  return std::nullopt;
}

PlanStatistics compute_plan_statistics(const ExperimentSpec& spec, const std::vector<LevelIndices>& cells) {
  PlanStatistics plan;
  plan.repetitions = spec.repetitions;
  plan.paired = is_blocked(spec.row_order);
  plan.comparisons = count_comparisons(spec.factors, cells);
  plan.alpha = spec.significance_level;
  const statistics::Pairing pairing = plan.paired ? statistics::Pairing::paired : statistics::Pairing::unpaired;
  plan.min_p_value = statistics::min_p_value(pairing, spec.repetitions);
  const std::size_t family = std::max<std::size_t>(plan.comparisons, 1);
  plan.can_be_significant = plan.min_p_value * static_cast<double>(family) < spec.significance_level;
  plan.needed_repetitions = statistics::min_repetitions(pairing, spec.significance_level, family);
  for (const MetricSpec& metric : spec.metrics) plan.measures += metric.metric.is_compared ? 1 : 0;
  plan.repetitions_for_all_measures =
      statistics::min_repetitions(pairing, spec.significance_level, family * plan.measures);
  if (plan.can_be_significant)
    plan.detectable_difference_sd =
        simulate_detectable_difference(pairing, spec.repetitions, spec.significance_level, family);
  return plan;
}

ExperimentPlan make_plan_of_spec(const ExperimentSpec& spec, const std::vector<LevelIndices>& cells) {
  ExperimentPlan plan;
  plan.name = spec.name;
  plan.factors = spec.factors;
  plan.cells = cells.size();
  plan.blocks = spec.repetitions;
  plan.order = to_string(spec.row_order);
  plan.seed = spec.seed;
  plan.statistics = compute_plan_statistics(spec, cells);
  for (const std::string& factor : find_unused_factors(spec)) {
    plan.diagnostics.add({"factor_unused", 1,
                          fmt::format("the command and its environment do not contain {{{}}}: the levels of this "
                                      "factor all run the same",
                                      factor),
                          fmt::format("pass the level to the command: {{{}}}", factor)});
  }
  return plan;
}

std::vector<ExperimentRow> read_pilot_rows(const ExperimentFolder& folder, const std::vector<LevelIndices>& cells,
                                           Diagnostics& diagnostics) {
  std::vector<ExperimentRow> rows;
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    std::optional<ExperimentRow> row = folder.read_last_result("pilot", cell, diagnostics);
    if (!row) continue;
    row->levels = cells[cell];
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace

std::size_t count_comparisons(const std::vector<ExperimentFactor>& factors, const std::vector<LevelIndices>& cells) {
  // Ignore one factor's level: each two cells that are equal then form a comparison.
  std::size_t max_comparisons = 0;
  for (std::size_t factor = 0; factor < factors.size(); ++factor) {
    if (!factors[factor].is_compared) continue;
    std::size_t comparisons = 0;
    std::map<LevelIndices, std::size_t> cell_count_by_other_levels;
    for (LevelIndices cell : cells) {
      cell[factor] = 0;
      comparisons += cell_count_by_other_levels[cell]++;
    }
    max_comparisons = std::max(max_comparisons, comparisons);
  }
  return max_comparisons;
}

std::optional<double> relative_noise_within_cells(std::span<const ExperimentRow> rows) {
  std::map<LevelIndices, std::vector<double>> cells;
  const EnergyBasis basis = energy_basis(rows);
  for (const ExperimentRow& row : rows) {
    const std::optional<double> value = basis.is_comparable() ? comparable_energy_j(basis, row) : row.elapsed_s;
    if (row.state == ExperimentRowState::done && value && *value > 0) cells[row.levels].push_back(*value);
  }
  double squares = 0;
  std::size_t degrees_of_freedom = 0;
  for (const auto& [levels, values] : cells) {
    double mean = 0;
    for (const double value : values) mean += value / static_cast<double>(values.size());
    for (const double value : values) squares += (value / mean - 1) * (value / mean - 1);
    degrees_of_freedom += values.size() - 1;
  }
  if (degrees_of_freedom == 0) return std::nullopt;
  return std::sqrt(squares / static_cast<double>(degrees_of_freedom));
}

std::optional<ExperimentForecast> forecast_experiment(const ExperimentSpec& spec, std::span<const ExperimentRow> rows,
                                                      std::span<const ExperimentRow> pilot_rows) {
  std::map<LevelIndices, MeanAccumulator> mean_time_by_cell;
  std::map<LevelIndices, MeanAccumulator> mean_energy_by_cell;
  MeanAccumulator time;
  MeanAccumulator energy;
  ExperimentForecast forecast;
  std::vector<ExperimentRow> combined_rows(rows.begin(), rows.end());
  combined_rows.insert(combined_rows.end(), pilot_rows.begin(), pilot_rows.end());
  const EnergyBasis basis = energy_basis(combined_rows);
  for (const std::span<const ExperimentRow> row_group : {rows, pilot_rows}) {
    for (const ExperimentRow& row : row_group) {
      if (row.state != ExperimentRowState::done) continue;
      ++forecast.completed_rows;
      mean_time_by_cell[row.levels].add(row.elapsed_s);
      const std::optional<double> row_j = comparable_energy_j(basis, row);
      mean_energy_by_cell[row.levels].add(row_j);
      time.add(row.elapsed_s);
      energy.add(row_j);
    }
  }
  if (!time.value()) return std::nullopt;
  // Time of the recorder and the machine check between rows; a cool-down can take longer.
  const double pause_between_rows_s = spec.baseline_duration_s > 0 ? 1.5 : 0.5;
  double energy_j = 0;
  for (const ExperimentRow& row : rows) {
    if (row.state == ExperimentRowState::done) continue;
    ++forecast.rows;
    forecast.time_s += mean_time_by_cell[row.levels].value().value_or(*time.value()) + pause_between_rows_s;
    energy_j += mean_energy_by_cell[row.levels].value().value_or(energy.value().value_or(0));
  }
  if (forecast.rows > 0) {
    forecast.time_s +=
        spec.baseline_duration_s + static_cast<double>(spec.warm_up_runs) * (*time.value() + pause_between_rows_s);
    energy_j += static_cast<double>(spec.warm_up_runs) * energy.value().value_or(0);
  }
  if (!energy.value()) return forecast;
  forecast.energy_j = energy_j;
  forecast.provenance = basis.provenance;
  const double kilowatt_hours = energy_j / kJoulesPerKilowattHour;
  if (spec.costs.gco2_per_kwh) forecast.co2_g = kilowatt_hours * *spec.costs.gco2_per_kwh;
  if (spec.costs.price_per_kwh) forecast.price = kilowatt_hours * *spec.costs.price_per_kwh;
  forecast.currency = spec.costs.currency;
  return forecast;
}

Result<ExperimentPlan> summarize_plan(const ExperimentSpec& spec) {
  const Result<std::vector<PlannedRow>> rows = plan_rows(spec);
  if (!rows) return rows.error();
  ExperimentPlan plan = make_plan_of_spec(spec, list_planned_cells(spec));
  for (std::size_t number = 0; number < rows->size(); ++number) {
    ExperimentPlanRow row;
    row.number = number;
    row.block = rows->at(number).block_number;
    row.levels = rows->at(number).levels;
    plan.rows.push_back(std::move(row));
  }
  return plan;
}

ExperimentPlan summarize_plan(const ExperimentFolder& folder) {
  const std::vector<LevelIndices> cells = list_planned_cells(folder.spec());
  ExperimentPlan plan = make_plan_of_spec(folder.spec(), cells);
  plan.folder = folder.path();
  const ExperimentData data = folder.read();
  plan.diagnostics.add_all(data.diagnostics);
  for (const ExperimentRow& row : data.rows) {
    plan.rows.push_back(
        {row.number, row.block, row.levels, row.state, row.attempts, row.node, row.elapsed_s, {}, {}, row.error});
    if (const std::optional<EnergyWithProvenance> complete_energy = energy_if_complete(total_energy(row.domains))) {
      plan.rows.back().energy_j = complete_energy->joules;
      plan.rows.back().provenance = complete_energy->provenance;
    }
  }
  plan.statistics.noise = relative_noise_within_cells(data.rows);
  plan.forecast = forecast_experiment(folder.spec(), data.rows, read_pilot_rows(folder, cells, plan.diagnostics));
  return plan;
}

}  // namespace joulemap::experiment
