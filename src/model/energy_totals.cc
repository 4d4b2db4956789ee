// SPDX-License-Identifier: Apache-2.0
#include "model/energy_totals.h"

namespace joulemap {
namespace {

// Returns none as soon as one term is unknown.
template <class Amount>
std::optional<Amount> sum_of_known(bool is_first, const std::optional<Amount>& sum, const std::optional<Amount>& more) {
  if (is_first) return more;
  return sum && more ? std::optional<Amount>(*sum + *more) : std::nullopt;
}

template <Provenance kProvenance>
void add_domain(std::optional<EnergySum<kProvenance>>& sum, const DomainEnergy& row) {
  using Watts = SourcedAmount<WattUnit, kProvenance>;
  const bool is_first = !sum;
  if (is_first) sum.emplace();
  sum->energy += SourcedAmount<JouleUnit, kProvenance>(*row.joules);
  sum->uncertainty_j = sum_of_known(is_first, sum->uncertainty_j, row.uncertainty_j);
  const std::optional<Watts> row_power = row.mean_w ? std::optional(Watts(*row.mean_w)) : std::nullopt;
  sum->power = sum_of_known(is_first, sum->power, row_power);
  sum->domains.push_back(row.name);
}

template <Provenance kProvenance>
std::optional<ShownEnergy> shown_sum(const std::optional<EnergySum<kProvenance>>& sum) {
  if (!sum) return std::nullopt;
  const std::optional<double> mean_w = sum->power ? std::optional(sum->power->value()) : std::nullopt;
  return ShownEnergy{kProvenance, sum->energy.value(), sum->uncertainty_j, mean_w, sum->domains};
}

template <class IsWanted>
EnergyTotals total_of_wanted(std::span<const DomainEnergy> rows, const IsWanted& is_wanted) {
  EnergyTotals totals;
  for (const DomainEnergy& row : rows) {
    if (!row.counted || !is_wanted(row.name)) continue;
    if (!row.joules) {
      totals.unread.push_back(row.name);
    } else if (row.provenance == Provenance::measured) {
      add_domain(totals.measured, row);
    } else {
      add_domain(totals.estimated, row);
    }
  }
  return totals;
}

}  // namespace

EnergyTotals total_energy(std::span<const DomainEnergy> rows) {
  return total_of_wanted(rows, [](const std::string&) { return true; });
}

EnergyTotals total_energy(std::span<const DomainEnergy> rows, const std::set<std::string>& only) {
  return total_of_wanted(rows, [&](const std::string& name) { return only.contains(name); });
}

std::optional<ShownEnergy> energy_of(const EnergyTotals& totals, Provenance provenance) {
  return provenance == Provenance::measured ? shown_sum(totals.measured) : shown_sum(totals.estimated);
}

std::optional<ShownEnergy> shown_energy(const EnergyTotals& totals) {
  return totals.measured ? shown_sum(totals.measured) : shown_sum(totals.estimated);
}

std::optional<ShownEnergy> complete_energy(const EnergyTotals& totals) {
  return totals.unread.empty() ? shown_energy(totals) : std::nullopt;
}

PowerTotals total_power(const EnergyTotals& totals) {
  PowerTotals power;
  if (totals.measured) power.measured = totals.measured->power;
  if (totals.estimated) power.estimated = totals.estimated->power;
  return power;
}

std::optional<double> power_of(const PowerTotals& totals, Provenance provenance) {
  if (provenance == Provenance::measured && totals.measured) return totals.measured->value();
  if (provenance == Provenance::estimated && totals.estimated) return totals.estimated->value();
  return std::nullopt;
}

std::optional<double> shown_power(const PowerTotals& totals) {
  return power_of(totals, totals.measured ? Provenance::measured : Provenance::estimated);
}

std::optional<ComparedPower> compared_power(const PowerTotals& power, const PowerTotals& reference) {
  if (power.measured && reference.measured) return ComparedPower{power.measured->value(), reference.measured->value()};
  if (!power.estimated || !reference.estimated) return std::nullopt;
  return ComparedPower{power.estimated->value(), reference.estimated->value()};
}

}  // namespace joulemap
