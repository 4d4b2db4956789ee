// SPDX-License-Identifier: Apache-2.0
#include "energy/make_domain_table.h"

#include <gtest/gtest.h>

namespace joulemap {
namespace {

ChannelEnergy measured(std::string domain, std::optional<double> joules, DomainClass domain_class,
                       std::string parent_domain = "", std::string sensor = "powercap") {
  ChannelEnergy energy;
  energy.channel.domain = energy.channel.name = std::move(domain);
  energy.channel.sensor = std::move(sensor);
  energy.channel.part_of = std::move(parent_domain);
  energy.channel.domain_class = domain_class;
  energy.joules = joules;
  energy.uncertainty_j = 0.1;
  if (!joules) energy.missing_reason = "frozen";
  return energy;
}

ChannelEnergy estimated(std::string domain, double joules, DomainClass domain_class) {
  ChannelEnergy energy = measured(std::move(domain), joules, domain_class, "", "estimate");
  energy.channel.provenance = Provenance::estimated;
  return energy;
}

const DomainEnergy& row(const DomainTable& table, std::string_view name) {
  for (const DomainEnergy& candidate : table.rows) {
    if (candidate.name == name) return candidate;
  }
  ADD_FAILURE() << "no row " << name;
  return table.rows.front();
}

TEST(DomainTable, SumsPackagesAndDramButNotTheirCores) {
  const std::vector<ChannelEnergy> channels = {measured("package-0", 100, DomainClass::cpu),
                                               measured("core-0", 70, DomainClass::other, "package-0"),
                                               measured("dram-0", 10, DomainClass::memory)};
  const DomainTable table = make_domain_table(channels, 10);
  EXPECT_DOUBLE_EQ(joules_of(table.totals.measured).value(), 110);
  EXPECT_FALSE(row(table, "core-0").is_counted);
  EXPECT_DOUBLE_EQ(row(table, "package-0").mean_w.value(), 10);
}

TEST(DomainTable, CountsThePlatformAloneWhenItContainsEverything) {
  const std::vector<ChannelEnergy> channels = {measured("package-0", 100, DomainClass::cpu, "psys"),
                                               measured("core-0", 70, DomainClass::other, "package-0"),
                                               measured("psys", 150, DomainClass::platform)};
  EXPECT_DOUBLE_EQ(joules_of(make_domain_table(channels, 10).totals.measured).value(), 150);
}

TEST(DomainTable, CountsThePackagesWhenThePlatformIsFrozen) {
  const std::vector<ChannelEnergy> channels = {measured("package-0", 100, DomainClass::cpu, "psys"),
                                               measured("core-0", 70, DomainClass::other, "package-0"),
                                               measured("psys", std::nullopt, DomainClass::platform)};
  const DomainTable table = make_domain_table(channels, 10);
  EXPECT_DOUBLE_EQ(joules_of(table.totals.measured).value(), 100);
  EXPECT_FALSE(row(table, "psys").joules);
  EXPECT_EQ(row(table, "psys").reason, "frozen");
  EXPECT_FALSE(row(table, "psys").provenance);
}

TEST(DomainTable, UsesASecondSensorOfADomainAsACheckOnly) {
  const std::vector<ChannelEnergy> channels = {measured("package-0", 100, DomainClass::cpu, "", "perf_event"),
                                               measured("package-0", 100.05, DomainClass::cpu, "", "powercap")};
  const DomainTable table = make_domain_table(channels, 10);
  EXPECT_DOUBLE_EQ(joules_of(table.totals.measured).value(), 100);
  ASSERT_EQ(table.rows.size(), 1u);
  ASSERT_EQ(table.rows[0].checks.size(), 1u);
  EXPECT_EQ(table.rows[0].checks[0].sensor, "powercap");
  EXPECT_TRUE(table.diagnostics.empty());
}

TEST(DomainTable, ReportsSensorsOfADomainThatDisagree) {
  const std::vector<ChannelEnergy> channels = {measured("package-0", 100, DomainClass::cpu, "", "perf_event"),
                                               measured("package-0", 60, DomainClass::cpu, "", "powercap")};
  EXPECT_TRUE(make_domain_table(channels, 10).diagnostics.contains("sensors_disagree"));
}

TEST(DomainTable, PrefersACounterOverAGaugeAndALiveSensorOverAFrozenOne) {
  ChannelEnergy gauge = measured("gpu", 90, DomainClass::gpu);
  gauge.channel.kind = ChannelKind::gauge;
  const std::vector<ChannelEnergy> channels = {gauge, measured("gpu", std::nullopt, DomainClass::gpu),
                                               measured("gpu", 95, DomainClass::gpu)};
  const DomainTable table = make_domain_table(channels, 10);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(table.rows[0].joules.value(), 95);
}

TEST(DomainTable, ShowsAnEstimateOnlyWhereNothingWasMeasured) {
  const std::vector<ChannelEnergy> channels = {
      measured("package-0-die-0", 50, DomainClass::cpu), measured("package-0-die-1", 50, DomainClass::cpu),
      estimated("package-0", 120, DomainClass::cpu), estimated("dram-0", 20, DomainClass::memory)};
  const DomainTable table = make_domain_table(channels, 10);
  EXPECT_EQ(table.rows.size(), 3u);
  EXPECT_DOUBLE_EQ(joules_of(table.totals.measured).value(), 100);
  EXPECT_DOUBLE_EQ(joules_of(table.totals.estimated).value(), 20);
}

TEST(DomainTable, ReplacesAFailedCounterByAnEstimate) {
  const std::vector<ChannelEnergy> channels = {measured("package-0", std::nullopt, DomainClass::cpu),
                                               estimated("package-0", 120, DomainClass::cpu)};
  const DomainTable table = make_domain_table(channels, 10);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].provenance, Provenance::estimated);
  EXPECT_FALSE(joules_of(table.totals.measured));
}

TEST(DomainTable, UsesARequestedEstimateAsACheckOnly) {
  const std::vector<ChannelEnergy> channels = {measured("package-0", 100, DomainClass::cpu),
                                               estimated("package-0", 120, DomainClass::cpu),
                                               estimated("package-1", 120, DomainClass::cpu)};
  const DomainTable table = make_domain_table(channels, 10, /*check_estimates=*/true);
  ASSERT_EQ(table.rows.size(), 1u);
  ASSERT_EQ(table.rows[0].checks.size(), 1u);
  EXPECT_EQ(table.rows[0].checks[0].sensor, "estimate");
  EXPECT_FALSE(joules_of(table.totals.estimated));
}

TEST(DomainTable, HasNoEstimateUnderAMeasuredPlatform) {
  const std::vector<ChannelEnergy> channels = {measured("psys", 150, DomainClass::platform),
                                               estimated("package-0", 120, DomainClass::cpu),
                                               estimated("dram-0", 20, DomainClass::memory)};
  const DomainTable table = make_domain_table(channels, 10);
  EXPECT_EQ(table.rows.size(), 1u);
  EXPECT_FALSE(joules_of(table.totals.estimated));
}

TEST(DomainTable, NeverCountsADomainOfUnknownExtent) {
  ChannelEnergy board = measured("power_meter-0", 500, DomainClass::other);
  board.channel.is_countable = false;
  const std::vector<ChannelEnergy> channels = {measured("package-0", 100, DomainClass::cpu), board};
  EXPECT_DOUBLE_EQ(joules_of(make_domain_table(channels, 10).totals.measured).value(), 100);
}

TEST(DomainTable, SurvivesDomainsThatContainEachOther) {
  const std::vector<ChannelEnergy> channels = {measured("a", std::nullopt, DomainClass::other, "b"),
                                               measured("b", std::nullopt, DomainClass::other, "a")};
  EXPECT_EQ(make_domain_table(channels, 1).rows.size(), 2u);
}

TEST(DomainTable, HasNoRowForATemperature) {
  ChannelEnergy temperature = measured("gpu0", 82, DomainClass::gpu);
  temperature.channel.quantity = Quantity::temperature;
  ChannelEnergy other_domain_temperature = temperature;
  other_domain_temperature.channel.domain = "gpu1";
  const DomainTable table = make_domain_table(
      std::vector<ChannelEnergy>{temperature, other_domain_temperature, measured("gpu0", 500, DomainClass::gpu)}, 2);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(table.rows.front().joules.value(), 500);
  EXPECT_TRUE(table.rows.front().checks.empty());
  EXPECT_TRUE(table.diagnostics.empty());
}

}  // namespace
}  // namespace joulemap
