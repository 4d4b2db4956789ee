// SPDX-License-Identifier: Apache-2.0
#include "report/export/experiment_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace joulemap::report {
namespace {

template <class Number>
std::string exact(const std::optional<Number>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::vector<std::string> domain_names(const ExperimentData& data) {
  std::vector<std::string> names;
  for (const ExperimentRow& row : data.rows) {
    for (const DomainEnergy& domain : row.domains) {
      if (std::ranges::find(names, domain.name) == names.end()) names.push_back(domain.name);
    }
  }
  return names;
}

std::vector<std::string> heads_of(const ExperimentData& data, const std::vector<std::string>& domains) {
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

std::string joined(const std::vector<std::string>& codes) {
  std::string text;
  for (const std::string& code : codes) text += (text.empty() ? "" : ", ") + code;
  return text;
}

// The columns about provenance. They are the last ones, so that the index of older columns has not changed.
void add_by_provenance(const ExperimentRow& row, const EnergyTotals& totals,
                       const std::optional<EnergyWithProvenance>& shown, std::vector<std::string>& cells) {
  cells.insert(cells.end(),
               {shown ? std::string(to_string(shown->provenance)) : "", exact(joules_of(totals.measured)),
                exact(joules_of(totals.estimated)), totals.measured ? joined(totals.measured->domains) : "",
                exact(power_by_provenance(row.baseline, Provenance::measured)),
                exact(power_by_provenance(row.baseline, Provenance::estimated)),
                exact(power_by_provenance(row.first, Provenance::measured)),
                exact(power_by_provenance(row.first, Provenance::estimated))});
}

}  // namespace

TextTable full_precision_rows_table(const ExperimentData& data, const AnalysisResult& result) {
  TextTable table;
  const std::vector<std::string> domains = domain_names(data);
  table.column_headers = heads_of(data, domains);
  table.is_number.assign(table.column_headers.size(), false);
  for (std::size_t i = 0; i < data.rows.size(); ++i) {
    const ExperimentRow& row = data.rows[i];
    const EnergyTotals totals = total_energy(row.domains);
    const std::optional<EnergyWithProvenance> shown = energy_if_complete(totals);
    const std::optional<double> energy_j = shown ? std::optional(shown->joules) : std::nullopt;
    std::vector<std::string> cells = {fmt::format("{}", row.number), fmt::format("{}", row.block)};
    for (std::size_t f = 0; f < data.factors.size(); ++f) cells.push_back(data.factors[f].levels.at(row.levels.at(f)));
    cells.insert(cells.end(), {std::string(name_of(row.state)), fmt::format("{}", row.attempts), exact(row.exit_code),
                               row.node, exact(row.start_unix_ns), exact(row.elapsed_s), exact(energy_j)});
    for (const std::string& name : domains) {
      const auto domain = std::ranges::find(row.domains, name, &DomainEnergy::name);
      cells.push_back(domain == row.domains.end() ? "" : exact(domain->joules));
    }
    for (std::size_t m = 0; m < data.metrics.size(); ++m) {
      cells.push_back(m < row.metrics.size() ? exact(row.metrics[m]) : "");
    }
    cells.insert(cells.end(),
                 {fmt::format("{}", row.epochs.size()), exact(preferred_power(row.baseline)),
                  exact(preferred_power(row.first)), exact(row.cpu_steal_share), exact(row.throttled_share)});
    cells.push_back(i < result.row_flags.size() ? joined(result.row_flags[i]) : "");
    add_by_provenance(row, totals, shown, cells);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace joulemap::report
