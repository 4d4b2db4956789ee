// SPDX-License-Identifier: Apache-2.0
#include "report/export/experiment_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace joulemap::report {
namespace {

template <class Number>
std::string full_precision_text(const std::optional<Number>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::vector<std::string> all_domain_names(const ExperimentData& data) {
  std::vector<std::string> names;
  for (const ExperimentRow& row : data.rows) {
    for (const DomainEnergy& domain : row.domains) {
      if (std::ranges::find(names, domain.name) == names.end()) names.push_back(domain.name);
    }
  }
  return names;
}

std::vector<std::string> rows_table_headers(const ExperimentData& data, const std::vector<std::string>& domains) {
  std::vector<std::string> column_headers = {"row", "block"};
  for (const ExperimentFactor& factor : data.factors) column_headers.push_back(factor.name);
  column_headers.insert(column_headers.end(),
                        {"state", "attempts", "exit_code", "node", "start_unix_ns", "time_s", "energy_j"});
  for (const std::string& domain : domains) column_headers.push_back(domain + "_j");
  for (const ExperimentMetric& metric : data.metrics) column_headers.push_back(metric.name);
  column_headers.insert(column_headers.end(),
                        {"epochs", "baseline_w", "first_w", "stolen_share", "throttled_share", "flags"});
  column_headers.insert(column_headers.end(),
                        {"energy_provenance", "measured_j", "estimated_j", "measured_domains", "baseline_measured_w",
                         "baseline_estimated_w", "first_measured_w", "first_estimated_w"});
  return column_headers;
}

std::string join_flag_codes(const std::vector<std::string>& codes) {
  std::string text;
  for (const std::string& code : codes) text += (text.empty() ? "" : ", ") + code;
  return text;
}

// The columns about provenance. They are the last ones, so that the index of older columns has not changed.
void append_energy_cells(const ExperimentRow& row, const EnergyTotals& totals,
                         const std::optional<EnergyWithProvenance>& complete_energy, std::vector<std::string>& cells) {
  cells.insert(cells.end(),
               {complete_energy ? std::string(to_string(complete_energy->provenance)) : "",
                full_precision_text(joules_of(totals.measured)), full_precision_text(joules_of(totals.estimated)),
                totals.measured ? join_flag_codes(totals.measured->domains) : "",
                full_precision_text(power_by_provenance(row.baseline, Provenance::measured)),
                full_precision_text(power_by_provenance(row.baseline, Provenance::estimated)),
                full_precision_text(power_by_provenance(row.first, Provenance::measured)),
                full_precision_text(power_by_provenance(row.first, Provenance::estimated))});
}

}  // namespace

TextTable full_precision_rows_table(const ExperimentData& data, const AnalysisResult& result) {
  TextTable table;
  const std::vector<std::string> domains = all_domain_names(data);
  table.column_headers = rows_table_headers(data, domains);
  table.is_number.assign(table.column_headers.size(), false);
  for (std::size_t i = 0; i < data.rows.size(); ++i) {
    const ExperimentRow& row = data.rows[i];
    const EnergyTotals totals = total_energy(row.domains);
    const std::optional<EnergyWithProvenance> complete_energy = energy_if_complete(totals);
    const std::optional<double> energy_j = complete_energy ? std::optional(complete_energy->joules) : std::nullopt;
    std::vector<std::string> cells = {fmt::format("{}", row.number), fmt::format("{}", row.block)};
    for (std::size_t factor_index = 0; factor_index < data.factors.size(); ++factor_index)
      cells.push_back(data.factors[factor_index].levels.at(row.levels.at(factor_index)));
    cells.insert(cells.end(), {std::string(name_of(row.state)), fmt::format("{}", row.attempts),
                               full_precision_text(row.exit_code), row.node, full_precision_text(row.start_unix_ns),
                               full_precision_text(row.elapsed_s), full_precision_text(energy_j)});
    for (const std::string& name : domains) {
      const auto domain = std::ranges::find(row.domains, name, &DomainEnergy::name);
      cells.push_back(domain == row.domains.end() ? "" : full_precision_text(domain->joules));
    }
    for (std::size_t metric_index = 0; metric_index < data.metrics.size(); ++metric_index) {
      cells.push_back(metric_index < row.metrics.size() ? full_precision_text(row.metrics[metric_index]) : "");
    }
    cells.insert(cells.end(), {fmt::format("{}", row.epochs.size()), full_precision_text(preferred_power(row.baseline)),
                               full_precision_text(preferred_power(row.first)),
                               full_precision_text(row.cpu_steal_share), full_precision_text(row.throttled_share)});
    cells.push_back(i < result.row_flags.size() ? join_flag_codes(result.row_flags[i]) : "");
    append_energy_cells(row, totals, complete_energy, cells);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace joulemap::report
