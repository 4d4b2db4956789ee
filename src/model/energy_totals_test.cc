// SPDX-License-Identifier: Apache-2.0
#include "model/energy_totals.h"

#include <gtest/gtest.h>

#include <concepts>

namespace joulemap {
namespace {

template <class A, class B>
concept CanAdd = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept CanAddTo = requires(A a, B b) {
  a += b;
};
template <class A, class B>
concept CanCompare = requires(A a, B b) {
  a < b;
};

// Sums that mix provenances do not compile.
static_assert(CanAdd<MeasuredJoules, MeasuredJoules> && CanAddTo<MeasuredJoules, MeasuredJoules>);
static_assert(!CanAdd<MeasuredJoules, EstimatedJoules> && !CanAddTo<MeasuredJoules, EstimatedJoules>);
static_assert(!CanAdd<MeasuredWatts, EstimatedWatts> && !CanAddTo<EstimatedWatts, MeasuredWatts>);
static_assert(!CanAdd<MeasuredJoules, MeasuredWatts> && !CanAdd<MeasuredJoules, double>);
static_assert(!CanAddTo<double, MeasuredJoules> && !std::convertible_to<MeasuredJoules, double>);
static_assert(CanCompare<MeasuredJoules, MeasuredJoules> && !CanCompare<MeasuredJoules, EstimatedJoules>);

DomainEnergy domain(std::string name, std::optional<double> joules, Provenance provenance = Provenance::measured) {
  DomainEnergy row;
  row.name = std::move(name);
  row.joules = joules;
  if (joules) row.provenance = provenance;
  if (joules) row.uncertainty_j = *joules / 10;
  if (joules) row.mean_w = *joules / 2;
  row.is_counted = true;
  return row;
}

std::vector<DomainEnergy> machine() {
  DomainEnergy part = domain("core-0", 80);
  part.is_counted = false;
  return {domain("package-0", 100), part, domain("gpu0", 50), domain("dram-0", 30, Provenance::estimated),
          domain("gpu1", std::nullopt)};
}

TEST(EnergyTotals, TotalsHaveASumForEachProvenanceOfTheCountedDomains) {
  const EnergyTotals totals = total_energy(machine());
  ASSERT_TRUE(totals.measured && totals.estimated);
  EXPECT_EQ(totals.measured->energy, MeasuredJoules(150));
  EXPECT_EQ(totals.measured->uncertainty_j, 15);
  EXPECT_EQ(totals.measured->power, MeasuredWatts(75));
  EXPECT_EQ(totals.measured->domains, (std::vector<std::string>{"package-0", "gpu0"}));
  EXPECT_EQ(totals.estimated->energy, EstimatedJoules(30));
  EXPECT_EQ(totals.domains_without_value, std::vector<std::string>{"gpu1"});
}

TEST(EnergyTotals, TotalsOfNoDomainsAreUnknownAndNotZero) {
  const EnergyTotals totals = total_energy({});
  EXPECT_FALSE(totals.measured || totals.estimated || preferred_energy(totals));
}

TEST(EnergyTotals, TotalsCanBeRestrictedToNamedDomains) {
  const EnergyTotals totals = total_energy(machine(), {"gpu0", "dram-0"});
  EXPECT_EQ(joules_of(totals.measured), 50);
  EXPECT_EQ(joules_of(totals.estimated), 30);
  EXPECT_TRUE(totals.domains_without_value.empty());
}

TEST(EnergyTotals, AMissingUncertaintyOrPowerMakesThatOfTheSumUnknown) {
  std::vector<DomainEnergy> rows = machine();
  rows[2].uncertainty_j.reset();
  rows[0].mean_w.reset();
  const EnergyTotals totals = total_energy(rows);
  EXPECT_FALSE(totals.measured->uncertainty_j);
  EXPECT_FALSE(totals.measured->power);
  EXPECT_EQ(joules_of(totals.measured), 150);
}

TEST(EnergyTotals, TotalsPreferTheMeasuredSumToTheEstimatedOne) {
  EXPECT_EQ(preferred_energy(total_energy(machine()))->joules, 150);
  const EnergyTotals estimates = total_energy(machine(), {"dram-0"});
  EXPECT_EQ(preferred_energy(estimates)->provenance, Provenance::estimated);
  EXPECT_EQ(preferred_energy(estimates)->joules, 30);
}

TEST(EnergyTotals, TotalsAreCompleteOnlyWhereEveryCountedDomainHasAValue) {
  EXPECT_FALSE(energy_if_complete(total_energy(machine())));
  std::vector<DomainEnergy> rows = machine();
  rows.pop_back();
  EXPECT_EQ(energy_if_complete(total_energy(rows))->joules, 150);
}

TEST(PowerTotals, PowerTotalsAreComparedWithinOneProvenance) {
  const PowerTotals measured_power{MeasuredWatts(10), {}};
  const PowerTotals estimated_power{{}, EstimatedWatts(90)};
  const PowerTotals mixed_power{MeasuredWatts(20), EstimatedWatts(80)};
  EXPECT_FALSE(choose_comparable_power(measured_power, estimated_power));
  EXPECT_EQ(choose_comparable_power(mixed_power, measured_power)->power_w, 20);
  EXPECT_EQ(choose_comparable_power(mixed_power, estimated_power)->power_w, 80);
  EXPECT_EQ(preferred_power(mixed_power), 20);
  EXPECT_EQ(preferred_power(estimated_power), 90);
}

}  // namespace
}  // namespace joulemap
