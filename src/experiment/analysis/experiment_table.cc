// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/experiment_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/text.h"

namespace joulemap::experiment {
namespace {

std::optional<double> finite_or_none(std::optional<double> value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// Kinds of counted domains, in row order. A single kind equals the total energy and is left out.
std::vector<std::string> counted_domain_kinds(const ExperimentData& data) {
  std::vector<std::string> kinds;
  for (const ExperimentRow& row : data.rows) {
    for (const DomainEnergy& domain : row.domains) {
      const std::string_view kind = kind_of_domain(domain.name);
      if (domain.is_counted && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.emplace_back(kind);
    }
  }
  if (kinds.size() == 1) kinds.clear();
  return kinds;
}

Measure make_energy_measure(std::string name, MeasureKind kind, const EnergyBasis& basis) {
  Measure measure{std::move(name), kind, "J"};
  if (basis.has_energy) measure.provenance = basis.provenance;
  measure.domains = basis.domains;
  measure.excluded_domains = basis.excluded_domains;
  return measure;
}

// A kind is not compared if it is estimated beside measured energy, or if it equals the total energy.
std::vector<Measure> make_measures(const ExperimentData& data) {
  std::vector<Measure> measures{make_energy_measure("energy_j", MeasureKind::energy, energy_basis(data.rows))};
  for (const std::string& kind : counted_domain_kinds(data)) {
    Measure part = make_energy_measure(kind, MeasureKind::domain, energy_basis(data.rows, kind));
    const Measure& total_measure = measures.front();
    part.is_compared = part.provenance == total_measure.provenance && part.domains != total_measure.domains;
    measures.push_back(std::move(part));
  }
  measures.push_back({"time_s", MeasureKind::time, "s"});
  for (const ExperimentMetric& metric : data.metrics) {
    measures.push_back({metric.name, MeasureKind::metric, metric.unit, metric.more_is_better, metric.is_compared});
  }
  return measures;
}

Result<std::vector<Measure>> select_measures(const ExperimentData& data, std::span<const std::string> measure_names) {
  std::vector<Measure> available_measures = make_measures(data);
  if (measure_names.empty()) return available_measures;
  std::vector<Measure> selected_measures;
  for (const std::string& name : measure_names) {
    const auto matching_measure = std::find_if(available_measures.begin(), available_measures.end(),
                                               [&](const Measure& measure) { return measure.name == name; });
    if (matching_measure != available_measures.end()) {
      selected_measures.push_back(*matching_measure);
      selected_measures.back().is_compared = true;  // the user requested it
      continue;
    }
    std::string available_names;
    for (const Measure& measure : available_measures)
      available_names += (available_names.empty() ? "" : ", ") + measure.name;
    return Error{ErrorCode::usage, fmt::format("the experiment has no metric {}", joulemap::quoted(name)),
                 available_names};
  }
  return selected_measures;
}

std::optional<double> measure_value_of_row(const ExperimentData& data, const ExperimentRow& row,
                                           const Measure& measure) {
  switch (measure.kind) {
    case MeasureKind::energy:
    case MeasureKind::domain:
      return finite_or_none(comparable_energy_j({measure.provenance.value_or(Provenance::measured), measure.domains,
                                                 measure.excluded_domains, measure.provenance.has_value()},
                                                row));
    case MeasureKind::time:
      return finite_or_none(row.elapsed_s);
    case MeasureKind::metric:
      break;
  }
  for (std::size_t i = 0; i < data.metrics.size() && i < row.metrics.size(); ++i) {
    if (data.metrics[i].name == measure.name) return finite_or_none(row.metrics[i]);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::size_t> rows_in_run_order(const ExperimentData& data) {
  std::vector<std::size_t> order(data.rows.size());
  std::iota(order.begin(), order.end(), 0);
  const bool has_times = std::all_of(data.rows.begin(), data.rows.end(), [](const ExperimentRow& row) {
    return row.start_unix_ns || row.state != ExperimentRowState::done;
  });
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left_index, std::size_t right_index) {
    const ExperimentRow& left_row = data.rows[left_index];
    const ExperimentRow& right_row = data.rows[right_index];
    if (has_times && left_row.start_unix_ns != right_row.start_unix_ns)
      return left_row.start_unix_ns < right_row.start_unix_ns;
    return left_row.number < right_row.number;
  });
  return order;
}

std::vector<double> ExperimentTable::measure_values_of_cell(const CellRows& cell, std::size_t measure) const {
  std::vector<double> cell_values;
  for (const std::size_t row : cell.done_rows) {
    if (values_by_row[row][measure]) cell_values.push_back(*values_by_row[row][measure]);
  }
  return cell_values;
}

std::optional<std::size_t> ExperimentTable::find_cell_index(std::span<const std::size_t> levels) const {
  const auto is_cell_before = [](const CellRows& cell, std::span<const std::size_t> target_levels) {
    return std::lexicographical_compare(cell.level_indices.begin(), cell.level_indices.end(), target_levels.begin(),
                                        target_levels.end());
  };
  const auto matching_cell = std::lower_bound(cells.begin(), cells.end(), levels, is_cell_before);
  if (matching_cell == cells.end() || !std::equal(levels.begin(), levels.end(), matching_cell->level_indices.begin(),
                                                  matching_cell->level_indices.end())) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(matching_cell - cells.begin());
}

const CellRows* ExperimentTable::find_cell(std::span<const std::size_t> levels) const {
  const std::optional<std::size_t> index = find_cell_index(levels);
  return index ? &cells[*index] : nullptr;
}

Result<ExperimentTable> make_experiment_table(const ExperimentData& data, std::span<const std::string> measure_names) {
  Result<std::vector<Measure>> measures = select_measures(data, measure_names);
  if (!measures) return std::move(measures).error();
  ExperimentTable table;
  table.measures = std::move(*measures);
  table.energy_basis = energy_basis(data.rows);
  std::map<std::vector<std::size_t>, CellRows> cells;
  for (const std::size_t index : rows_in_run_order(data)) {
    const ExperimentRow& row = data.rows[index];
    CellRows& cell = cells[row.levels];
    cell.level_indices = row.levels;
    ++cell.planned_row_count;
    if (row.state == ExperimentRowState::done) cell.done_rows.push_back(index);
    if (row.state == ExperimentRowState::failed) ++cell.failed_row_count;
  }
  for (auto& [levels, cell] : cells) table.cells.push_back(std::move(cell));
  table.values_by_row.reserve(data.rows.size());
  for (const ExperimentRow& row : data.rows) {
    std::vector<std::optional<double>>& values = table.values_by_row.emplace_back();
    for (const Measure& measure : table.measures) values.push_back(measure_value_of_row(data, row, measure));
  }
  return table;
}

std::string factor_levels_text(const std::vector<ExperimentFactor>& factors,
                               std::span<const std::optional<std::size_t>> levels) {
  std::string text;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (!levels[i]) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", factors[i].name, factors[i].levels[*levels[i]]);
  }
  return text;
}

std::string factor_levels_text(const std::vector<ExperimentFactor>& factors, std::span<const std::size_t> levels) {
  const std::vector<std::optional<std::size_t>> optional_levels(levels.begin(), levels.end());
  return factor_levels_text(factors, std::span<const std::optional<std::size_t>>(optional_levels));
}

}  // namespace joulemap::experiment
