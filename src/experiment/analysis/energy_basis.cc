// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/energy_basis.h"

#include <algorithm>

#include "model/energy_totals.h"

namespace joulemap::experiment {
namespace {

bool contains_name(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

EnergyTotals energy_totals_of_kind(const ExperimentRow& row, std::string_view kind) {
  if (kind.empty()) return total_energy(row.domains);
  std::set<std::string> names;
  for (const DomainEnergy& domain : row.domains) {
    if (kind_of_domain(domain.name) == kind) names.insert(domain.name);
  }
  return total_energy(row.domains, names);
}

bool lacks_domain_reading(const EnergyTotals& totals, const std::vector<std::string>& domains) {
  return std::any_of(totals.domains_without_value.begin(), totals.domains_without_value.end(),
                     [&](const std::string& name) { return contains_name(domains, name); });
}

}  // namespace

EnergyBasis energy_basis(std::span<const ExperimentRow> rows, std::string_view kind) {
  std::vector<EnergyTotals> totals;
  for (const ExperimentRow& row : rows) {
    if (row.state == ExperimentRowState::done) totals.push_back(energy_totals_of_kind(row, kind));
  }
  EnergyBasis basis;
  const bool is_measured =
      std::any_of(totals.begin(), totals.end(), [](const auto& row_totals) { return row_totals.measured; });
  basis.provenance = is_measured ? Provenance::measured : Provenance::estimated;
  std::vector<std::string> domain_names;
  for (const EnergyTotals& row_totals : totals) {
    const std::optional<EnergyWithProvenance> energy = energy_by_provenance(row_totals, basis.provenance);
    if (!energy) continue;
    basis.has_energy = true;
    for (const std::string& name : energy->domains) {
      if (!contains_name(domain_names, name)) domain_names.push_back(name);
    }
  }
  std::size_t complete_row_count = 0;
  std::vector<std::size_t> row_count_by_domain(domain_names.size());
  for (const EnergyTotals& row_totals : totals) {
    const std::optional<EnergyWithProvenance> energy = energy_by_provenance(row_totals, basis.provenance);
    if (!energy || lacks_domain_reading(row_totals, domain_names)) continue;
    ++complete_row_count;
    for (std::size_t i = 0; i < domain_names.size(); ++i)
      row_count_by_domain[i] += contains_name(energy->domains, domain_names[i]) ? 1 : 0;
  }
  for (std::size_t i = 0; i < domain_names.size(); ++i) {
    const bool is_common_domain = complete_row_count > 0 && row_count_by_domain[i] == complete_row_count;
    (is_common_domain ? basis.domains : basis.excluded_domains).push_back(domain_names[i]);
  }
  return basis;
}

std::optional<double> comparable_energy_j(const EnergyBasis& basis, const ExperimentRow& row) {
  if (!basis.is_comparable()) return std::nullopt;
  const std::set<std::string> names(basis.domains.begin(), basis.domains.end());
  const std::optional<EnergyWithProvenance> energy =
      energy_by_provenance(total_energy(row.domains, names), basis.provenance);
  if (!energy || energy->domains.size() != names.size()) return std::nullopt;
  const EnergyTotals row_totals = total_energy(row.domains);
  if (lacks_domain_reading(row_totals, basis.excluded_domains)) return std::nullopt;
  return energy->joules;
}

bool has_domains_of_basis(const EnergyBasis& basis, const ExperimentRow& row) {
  const std::optional<EnergyWithProvenance> row_energy = preferred_energy(total_energy(row.domains));
  return row_energy && row_energy->provenance == basis.provenance &&
         std::is_permutation(row_energy->domains.begin(), row_energy->domains.end(), basis.domains.begin(),
                             basis.domains.end());
}

std::string_view kind_of_domain(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  if (end == std::string_view::npos) return name;
  const std::string_view kind = name.substr(0, end + 1);
  return kind.size() > 1 && kind.ends_with('-') ? kind.substr(0, kind.size() - 1) : kind;
}

}  // namespace joulemap::experiment
