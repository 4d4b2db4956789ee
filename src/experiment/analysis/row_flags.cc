// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "experiment/analysis/validity.h"

namespace joulemap::experiment {
namespace {

using FlagCodes = std::vector<std::string>;

void add_flag_code(FlagCodes& codes, std::string_view code) {
  if (std::ranges::find(codes, code) == codes.end()) codes.emplace_back(code);
}

void add_energy_flag_codes(const ExperimentRow& row, const EnergyBasis& energy, FlagCodes& codes) {
  const std::optional<EnergyWithProvenance> row_energy =
      energy_by_provenance(total_energy(row.domains), energy.provenance);
  const auto lacks_domain = [&](const std::string& name) {
    return std::ranges::find(row_energy->domains, name) == row_energy->domains.end();
  };
  if (row_energy && std::ranges::any_of(energy.excluded_domains, lacks_domain)) add_flag_code(codes, "domains_differ");
  if (!comparable_energy_j(energy, row)) return add_flag_code(codes, "missing_energy");
  const auto flag_energy_sign = [&](const std::optional<double>& joules) {
    if (joules && *joules == 0) add_flag_code(codes, "zero_energy");
    if (joules && *joules < 0) add_flag_code(codes, "negative_energy");
  };
  for (const DomainEnergy& domain : row.domains) flag_energy_sign(domain.joules);
}

void add_outlier_flag_codes(const ExperimentTable& table, const CellRows& rows, const AnalysisCell& cell,
                            std::vector<FlagCodes>& flags) {
  for (std::size_t measure = 0; measure < cell.measures.size(); ++measure) {
    if (!cell.measures[measure]) continue;
    std::vector<std::size_t> rows_with_value;
    for (const std::size_t row : rows.done_rows) {
      if (table.values_by_row[row][measure]) rows_with_value.push_back(row);
    }
    for (const std::size_t index : cell.measures[measure]->outliers)
      add_flag_code(flags[rows_with_value[index]], "outlier");
  }
}

}  // namespace

std::vector<FlagCodes> compute_row_flags(const ExperimentData& data, const ExperimentTable& table,
                                         const std::vector<AnalysisCell>& cells) {
  std::vector<FlagCodes> flags(data.rows.size());
  for (std::size_t i = 0; i < data.rows.size(); ++i) {
    const ExperimentRow& row = data.rows[i];
    if (row.state == ExperimentRowState::failed) add_flag_code(flags[i], "failed");
    if (row.state == ExperimentRowState::done) add_energy_flag_codes(row, table.energy_basis, flags[i]);
    if (row.throttled_share.value_or(0) > kMaxUndisturbedTimeShare) add_flag_code(flags[i], "throttled");
    if (row.cpu_steal_share.value_or(0) > kMaxUndisturbedTimeShare) add_flag_code(flags[i], "stolen_time");
    const std::optional<PowerAndReference> start_power = choose_comparable_power(row.first, row.baseline);
    if (start_power && is_above_idle(start_power->power_w, start_power->reference_w))
      add_flag_code(flags[i], "cool_down");
    for (const Diagnostic& diagnostic : row.diagnostics.list()) add_flag_code(flags[i], diagnostic.code);
  }
  for (std::size_t i = 0; i < cells.size(); ++i) add_outlier_flag_codes(table, table.cells[i], cells[i], flags);
  return flags;
}

}  // namespace joulemap::experiment
