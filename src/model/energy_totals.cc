// SPDX-License-Identifier: Apache-2.0
#include "model/energy_totals.h"

namespace joulemap {
namespace {

// Adds `summand` to `sum`, which is ignored for the first term. Returns none if a term is unknown.
template <class Amount>
std::optional<Amount> add_if_both_known(bool is_first, const std::optional<Amount>& sum,
                                        const std::optional<Amount>& summand) {
  if (is_first) return summand;
  return sum && summand ? std::optional<Amount>(*sum + *summand) : std::nullopt;
}

template <Provenance kProvenance>
void add_domain_energy(std::optional<EnergySum<kProvenance>>& sum, const DomainEnergy& row) {
  using WattsOfProvenance = AmountWithProvenance<WattUnit, kProvenance>;
  const bool is_first = !sum;
  if (is_first) sum.emplace();
  sum->energy += AmountWithProvenance<JouleUnit, kProvenance>(*row.joules);
  sum->uncertainty_j = add_if_both_known(is_first, sum->uncertainty_j, row.uncertainty_j);
  const std::optional<WattsOfProvenance> row_power =
      row.mean_w ? std::optional(WattsOfProvenance(*row.mean_w)) : std::nullopt;
  sum->power = add_if_both_known(is_first, sum->power, row_power);
  sum->domains.push_back(row.name);
}

template <Provenance kProvenance>
std::optional<EnergyWithProvenance> make_energy_with_provenance(const std::optional<EnergySum<kProvenance>>& sum) {
  if (!sum) return std::nullopt;
  const std::optional<double> mean_w = sum->power ? std::optional(sum->power->value()) : std::nullopt;
  return EnergyWithProvenance{kProvenance, sum->energy.value(), sum->uncertainty_j, mean_w, sum->domains};
}

template <class IsWanted>
EnergyTotals sum_matching_domains(std::span<const DomainEnergy> rows, const IsWanted& is_wanted) {
  EnergyTotals totals;
  for (const DomainEnergy& row : rows) {
    if (!row.is_counted || !is_wanted(row.name)) continue;
    if (!row.joules) {
      totals.domains_without_value.push_back(row.name);
    } else if (row.provenance == Provenance::measured) {
      add_domain_energy(totals.measured, row);
    } else {
      add_domain_energy(totals.estimated, row);
    }
  }
  return totals;
}

}  // namespace

EnergyTotals total_energy(std::span<const DomainEnergy> rows) {
  return sum_matching_domains(rows, [](const std::string&) { return true; });
}

EnergyTotals total_energy(std::span<const DomainEnergy> rows, const std::set<std::string>& domain_names) {
  return sum_matching_domains(rows, [&](const std::string& name) { return domain_names.contains(name); });
}

std::optional<EnergyWithProvenance> energy_by_provenance(const EnergyTotals& totals, Provenance provenance) {
  return provenance == Provenance::measured ? make_energy_with_provenance(totals.measured)
                                            : make_energy_with_provenance(totals.estimated);
}

std::optional<EnergyWithProvenance> preferred_energy(const EnergyTotals& totals) {
  return totals.measured ? make_energy_with_provenance(totals.measured) : make_energy_with_provenance(totals.estimated);
}

std::optional<EnergyWithProvenance> energy_if_complete(const EnergyTotals& totals) {
  return totals.domains_without_value.empty() ? preferred_energy(totals) : std::nullopt;
}

PowerTotals total_power(const EnergyTotals& totals) {
  PowerTotals power;
  if (totals.measured) power.measured = totals.measured->power;
  if (totals.estimated) power.estimated = totals.estimated->power;
  return power;
}

std::optional<double> power_by_provenance(const PowerTotals& totals, Provenance provenance) {
  if (provenance == Provenance::measured && totals.measured) return totals.measured->value();
  if (provenance == Provenance::estimated && totals.estimated) return totals.estimated->value();
  return std::nullopt;
}

std::optional<double> preferred_power(const PowerTotals& totals) {
  return power_by_provenance(totals, totals.measured ? Provenance::measured : Provenance::estimated);
}

std::optional<PowerAndReference> choose_comparable_power(const PowerTotals& power, const PowerTotals& reference) {
  if (power.measured && reference.measured)
    return PowerAndReference{power.measured->value(), reference.measured->value()};
  if (!power.estimated || !reference.estimated) return std::nullopt;
  return PowerAndReference{power.estimated->value(), reference.estimated->value()};
}

}  // namespace joulemap
