// SPDX-License-Identifier: Apache-2.0
//
// EnergyTotals: the energy of several domains, one sum for each provenance. Measured and estimated amounts are
// different types that do not convert, add or compare, so no sum mixes them. total_energy() is the only function that
// adds domains. Plain data and pure functions; joules, watts; half widths at the confidence level of the domains.
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

// A number with unit and provenance in its type. value() returns the plain number, for serialization and ratios.
template <class Unit, Provenance kProvenance>
class AmountWithProvenance {
 public:
  constexpr explicit AmountWithProvenance(double value) : value_(value) {}
  constexpr double value() const { return value_; }
  constexpr AmountWithProvenance& operator+=(AmountWithProvenance other_amount) {
    value_ += other_amount.value_;
    return *this;
  }
  friend constexpr AmountWithProvenance operator+(AmountWithProvenance a, AmountWithProvenance b) { return a += b; }
  friend constexpr auto operator<=>(AmountWithProvenance, AmountWithProvenance) = default;

 private:
  double value_;
};

using MeasuredJoules = AmountWithProvenance<JouleUnit, Provenance::measured>;
using EstimatedJoules = AmountWithProvenance<JouleUnit, Provenance::estimated>;
using MeasuredWatts = AmountWithProvenance<WattUnit, Provenance::measured>;
using EstimatedWatts = AmountWithProvenance<WattUnit, Provenance::estimated>;

// Sum over the counted domains of one provenance.
template <Provenance kProvenance>
struct EnergySum {
  AmountWithProvenance<JouleUnit, kProvenance> energy{0};
  // Sum of the half widths of the domains, because their errors may be correlated: domains are read at the same
  // moments, and estimates share a model. None when a domain has no half width.
  std::optional<double> uncertainty_j;
  std::optional<AmountWithProvenance<WattUnit, kProvenance>> power;  // mean power; none when a domain has none
  std::vector<std::string> domains;                                  // in row order
};
using MeasuredEnergySum = EnergySum<Provenance::measured>;
using EstimatedEnergySum = EnergySum<Provenance::estimated>;

struct EnergyTotals {
  std::optional<MeasuredEnergySum> measured;  // none when no counted domain has a measured value
  std::optional<EstimatedEnergySum> estimated;
  std::vector<std::string> domains_without_value;  // counted domains without a value; no sum contains them
};

// Sums the counted domains, with `domain_names` just those with these names.
EnergyTotals total_energy(std::span<const DomainEnergy> rows);
EnergyTotals total_energy(std::span<const DomainEnergy> rows, const std::set<std::string>& domain_names);

// A sum over counted domains, and its provenance.
struct EnergyWithProvenance {
  Provenance provenance = Provenance::measured;
  double joules = 0;
  std::optional<double> uncertainty_j;
  std::optional<double> mean_w;
  std::vector<std::string> domains;
};
// The measured sum, or else the estimated one; none when both are missing.
std::optional<EnergyWithProvenance> preferred_energy(const EnergyTotals& totals);
// The sum of this provenance; none when no counted domain has such a value.
std::optional<EnergyWithProvenance> energy_by_provenance(const EnergyTotals& totals, Provenance provenance);

// preferred_energy() for comparisons: none when a counted domain has no value, because the sum would be too low.
std::optional<EnergyWithProvenance> energy_if_complete(const EnergyTotals& totals);

// Mean power by provenance, for example of an idle machine or at the start of a run.
struct PowerTotals {
  std::optional<MeasuredWatts> measured;
  std::optional<EstimatedWatts> estimated;
};
PowerTotals total_power(const EnergyTotals& totals);
std::optional<double> power_by_provenance(const PowerTotals& totals, Provenance provenance);
// The measured power, or else the estimated one; none when both are missing.
std::optional<double> preferred_power(const PowerTotals& totals);
// A power and the reference to compare it with, both measured or both estimated.
struct PowerAndReference {
  double power_w = 0;
  double reference_w = 0;
};
// Measured if both are, else estimated if both are, else none.
std::optional<PowerAndReference> choose_comparable_power(const PowerTotals& power, const PowerTotals& reference);

// Plain numbers of a sum, for serialization; none without a sum.
template <Provenance kProvenance>
std::optional<double> joules_of(const std::optional<EnergySum<kProvenance>>& sum) {
  return sum ? std::optional(sum->energy.value()) : std::nullopt;
}
template <Provenance kProvenance>
std::optional<double> uncertainty_of(const std::optional<EnergySum<kProvenance>>& sum) {
  return sum ? sum->uncertainty_j : std::nullopt;
}

}  // namespace joulemap
