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
    const Measure& whole = measures.front();
    part.is_compared = part.provenance == whole.provenance && part.domains != whole.domains;
    measures.push_back(std::move(part));
  }
  measures.push_back({"time_s", MeasureKind::time, "s"});
  for (const ExperimentMetric& metric : data.metrics) {
    measures.push_back({metric.name, MeasureKind::metric, metric.unit, metric.more_is_better, metric.is_compared});
  }
  return measures;
}

Result<std::vector<Measure>> select_measures(const ExperimentData& data, std::span<const std::string> measure_names) {
  std::vector<Measure> all = make_measures(data);
  if (measure_names.empty()) return all;
  std::vector<Measure> chosen;
  for (const std::string& name : measure_names) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Measure& one) { return one.name == name; });
    if (found != all.end()) {
      chosen.push_back(*found);
      chosen.back().is_compared = true;  // the user requested it
      continue;
    }
    std::string known;
    for (const Measure& measure : all) known += (known.empty() ? "" : ", ") + measure.name;
    return Error{ErrorCode::usage, fmt::format("the experiment has no metric {}", joulemap::quoted(name)), known};
  }
  return chosen;
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
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const ExperimentRow& left = data.rows[a];
    const ExperimentRow& right = data.rows[b];
    if (has_times && left.start_unix_ns != right.start_unix_ns) return left.start_unix_ns < right.start_unix_ns;
    return left.number < right.number;
  });
  return order;
}

std::vector<double> ExperimentTable::measure_values_of_cell(const CellRows& cell, std::size_t measure) const {
  std::vector<double> found;
  for (const std::size_t row : cell.done_rows) {
    if (values_by_row[row][measure]) found.push_back(*values_by_row[row][measure]);
  }
  return found;
}

std::optional<std::size_t> ExperimentTable::find_cell_index(std::span<const std::size_t> levels) const {
  const auto before = [](const CellRows& cell, std::span<const std::size_t> wanted) {
    return std::lexicographical_compare(cell.level_indices.begin(), cell.level_indices.end(), wanted.begin(),
                                        wanted.end());
  };
  const auto found = std::lower_bound(cells.begin(), cells.end(), levels, before);
  if (found == cells.end() ||
      !std::equal(levels.begin(), levels.end(), found->level_indices.begin(), found->level_indices.end())) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(found - cells.begin());
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
  const std::vector<std::optional<std::size_t>> known(levels.begin(), levels.end());
  return factor_levels_text(factors, std::span<const std::optional<std::size_t>>(known));
}

}  // namespace joulemap::experiment
