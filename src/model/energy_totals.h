// SPDX-License-Identifier: Apache-2.0
//
// EnergyTotals: the energy of several domains, one sum for each provenance. There is no sum of both: measured and estimated
// amounts are different types, which neither convert nor add nor compare. total_energy is the only place that adds domains.
// Plain data and pure functions; joules, watts, half widths at the interval of the domains.
#pragma once

#include <compare>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/domain_energy.h"

namespace joulemap {

struct JouleUnit;
struct WattUnit;

// A number that knows its unit and where it came from. value() is for writers and for ratios.
template <class Unit, Provenance kProvenance>
class SourcedAmount {
 public:
  constexpr explicit SourcedAmount(double value) : value_(value) {}
  constexpr double value() const { return value_; }
  constexpr SourcedAmount& operator+=(SourcedAmount other) {
    value_ += other.value_;
    return *this;
  }
  friend constexpr SourcedAmount operator+(SourcedAmount a, SourcedAmount b) { return a += b; }
  friend constexpr auto operator<=>(SourcedAmount, SourcedAmount) = default;

 private:
  double value_;
};

using MeasuredJoules = SourcedAmount<JouleUnit, Provenance::measured>;
using EstimatedJoules = SourcedAmount<JouleUnit, Provenance::estimated>;
using MeasuredWatts = SourcedAmount<WattUnit, Provenance::measured>;
using EstimatedWatts = SourcedAmount<WattUnit, Provenance::estimated>;

// The counted domains of one provenance.
template <Provenance kProvenance>
struct EnergySum {
  SourcedAmount<JouleUnit, kProvenance> energy{0};
  // Half widths added up: domains are read at the same moments, and estimates share a model. None where a domain has none.
  std::optional<double> uncertainty_j;
  std::optional<SourcedAmount<WattUnit, kProvenance>> power;  // likewise
  std::vector<std::string> domains;                           // in the order of the rows
};
using MeasuredSum = EnergySum<Provenance::measured>;
using EstimatedSum = EnergySum<Provenance::estimated>;

struct EnergyTotals {
  std::optional<MeasuredSum> measured;  // none where no counted domain has such a value
  std::optional<EstimatedSum> estimated;
  std::vector<std::string> unread;  // counted domains without a value: no sum contains them
};

// Of the counted domains; `only` restricts them to these names.
EnergyTotals total_energy(std::span<const DomainEnergy> rows);
EnergyTotals total_energy(std::span<const DomainEnergy> rows, const std::set<std::string>& only);

// The one sum to show where there is room for one: the measured one, else the estimated one.
struct ShownEnergy {
  Provenance provenance = Provenance::measured;
  double joules = 0;
  std::optional<double> uncertainty_j;
  std::optional<double> mean_w;
  std::vector<std::string> domains;
};
std::optional<ShownEnergy> shown_energy(const EnergyTotals& totals);
// The sum of that provenance, if there is one.
std::optional<ShownEnergy> energy_of(const EnergyTotals& totals, Provenance provenance);

// Of a row or run that is compared: none where a counted domain has no value, because the sum of the others looks cheap.
std::optional<ShownEnergy> complete_energy(const EnergyTotals& totals);

// Mean power by provenance: of an idle machine, or when a run began.
struct PowerTotals {
  std::optional<MeasuredWatts> measured;
  std::optional<EstimatedWatts> estimated;
};
PowerTotals total_power(const EnergyTotals& totals);
std::optional<double> power_of(const PowerTotals& totals, Provenance provenance);
// The measured one, else the estimated one.
std::optional<double> shown_power(const PowerTotals& totals);
// Power and reference of one provenance; none where the two have none in common.
struct ComparedPower {
  double power_w = 0;
  double reference_w = 0;
};
std::optional<ComparedPower> compared_power(const PowerTotals& power, const PowerTotals& reference);

// For writers.
template <Provenance kProvenance>
std::optional<double> joules_of(const std::optional<EnergySum<kProvenance>>& sum) {
  return sum ? std::optional(sum->energy.value()) : std::nullopt;
}
template <Provenance kProvenance>
std::optional<double> uncertainty_of(const std::optional<EnergySum<kProvenance>>& sum) {
  return sum ? sum->uncertainty_j : std::nullopt;
}

}  // namespace joulemap
