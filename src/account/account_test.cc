// SPDX-License-Identifier: Apache-2.0
#include "account/account.h"

#include <gtest/gtest.h>

#include "model/run_rates.h"

namespace joulemap::account {
namespace {

// 2 kWh measured, 1 kWh estimated, in one hour.
ReportResult make_one_hour_report() {
  ReportResult report;
  report.elapsed_s = 3600;
  report.totals.measured = MeasuredEnergySum{MeasuredJoules(7.2e6), 3.6e5, {}, {"gpu0"}};
  report.totals.estimated = EstimatedEnergySum{EstimatedJoules(3.6e6), {}, {}, {"package-0"}};
  return report;
}

CarbonAccountAssumptions make_carbon_assumptions() {
  CarbonAccountAssumptions assumptions;
  assumptions.carbon_intensity = CarbonIntensity{100, {}, "France", "test", 2023};
  assumptions.pue = 1.5;
  assumptions.price_per_kwh = 0.2;
  assumptions.embodied = EmbodiedCarbon{1000, 4};
  return assumptions;
}

TEST(CarbonAccount, MeasuredAndEstimatedEnergyHaveTheirOwnEntries) {
  const Result<CarbonAccount> account = compute_carbon_account(make_one_hour_report(), make_carbon_assumptions());
  ASSERT_TRUE(account);
  ASSERT_EQ(account->entries.size(), 2U);
  const CarbonAccountEntry& measured = account->entries[0];
  EXPECT_EQ(measured.provenance, Provenance::measured);
  EXPECT_DOUBLE_EQ(measured.energy_j, 7.2e6) << "the joules are not changed";
  EXPECT_DOUBLE_EQ(measured.facility_j, 1.08e7);
  EXPECT_DOUBLE_EQ(*measured.gco2, 300);
  EXPECT_DOUBLE_EQ(*measured.gco2_low, 285);
  EXPECT_DOUBLE_EQ(*measured.gco2_high, 315);
  EXPECT_DOUBLE_EQ(*measured.price, 0.6);
  EXPECT_EQ(account->entries[1].provenance, Provenance::estimated);
  EXPECT_DOUBLE_EQ(*account->entries[1].gco2, 150);
  EXPECT_FALSE(account->entries[1].gco2_low) << "its energy has no interval";
}

TEST(CarbonAccount, TheRunGetsItsShareOfTheEmbodiedCarbon) {
  const Result<CarbonAccount> account = compute_carbon_account(make_one_hour_report(), make_carbon_assumptions());
  EXPECT_NEAR(*account->embodied_gco2, 1e6 / (4 * 365.25 * 24), 1e-9);
}

TEST(CarbonAccount, OmitsValuesWithoutAssumptions) {
  CarbonAccountAssumptions assumptions;
  EXPECT_TRUE(assumptions.is_empty());
  assumptions.price_per_kwh = 0.2;
  const Result<CarbonAccount> account = compute_carbon_account(make_one_hour_report(), assumptions);
  EXPECT_FALSE(account->entries[0].gco2);
  EXPECT_FALSE(account->embodied_gco2);
  EXPECT_DOUBLE_EQ(*account->entries[0].price, 0.4);
  EXPECT_EQ(account->everyday_equivalents.size(), 1U) << "nothing about carbon";
}

TEST(CarbonAccount, ProbingIsNotIncluded) {
  ReportResult report = make_one_hour_report();
  report.probe = ProbeCost{1800, 3.6e6};
  EXPECT_DOUBLE_EQ(*compute_carbon_account(report, make_carbon_assumptions())->entries[0].gco2, 150);
}

TEST(CarbonAccount, TheErrorOfAnEstimateIsReducedWithItsEnergy) {
  ReportResult report = make_one_hour_report();
  report.totals.estimated->uncertainty_j = 1.8e6;
  report.totals.measured->uncertainty_j = 3.6e5;
  report.probe = ProbeCost{1800, 3.6e6};
  const Result<CarbonAccount> account = compute_carbon_account(report, make_carbon_assumptions());
  const CarbonAccountEntry& estimated_entry = account->entries[1];
  EXPECT_DOUBLE_EQ(estimated_entry.energy_j, 1.8e6);
  EXPECT_DOUBLE_EQ(*estimated_entry.half_width_j, 0.9e6) << "50 %, as without probing";
  EXPECT_DOUBLE_EQ(*account->entries[0].half_width_j, 3.6e5) << "a measured error does not depend on the time";
  report.totals.measured.reset();
  const RunRates rates = compute_run_rates(report);
  EXPECT_DOUBLE_EQ(*rates.energy_j, 1.8e6);
  EXPECT_DOUBLE_EQ(*rates.half_width_j, 0.9e6);
}

TEST(CarbonAccount, UnknownEnergyHasNoEntries) {
  const Result<CarbonAccount> account = compute_carbon_account({}, make_carbon_assumptions());
  ASSERT_TRUE(account);
  EXPECT_TRUE(account->entries.empty() && account->everyday_equivalents.empty());
}

TEST(CarbonAccount, EquivalentsNameTheirSource) {
  const Result<CarbonAccount> account = compute_carbon_account(make_one_hour_report(), make_carbon_assumptions());
  ASSERT_EQ(account->everyday_equivalents.size(), 2U);
  EXPECT_NEAR(account->everyday_equivalents[0].amount, 1.08e7 / 334880, 1e-9);
  EXPECT_NEAR(account->everyday_equivalents[1].amount, 0.3 / 2.3477, 1e-4);
  for (const EverydayEquivalent& equivalent : account->everyday_equivalents) EXPECT_FALSE(equivalent.source.empty());
}

}  // namespace
}  // namespace joulemap::account
