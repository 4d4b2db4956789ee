// SPDX-License-Identifier: Apache-2.0
#include "account/carbon_table.h"

#include <gtest/gtest.h>

#include <set>

namespace joulemap::account {
namespace {

TEST(CarbonTable, EveryRowOfTheProgramHasASourceAndAYear) {
  const std::vector<CarbonRegion> table = built_in_carbon_table();
  EXPECT_GT(table.size(), 100U);
  std::set<std::string> names;
  for (const CarbonRegion& region : table) {
    EXPECT_TRUE(names.insert(region.name).second) << region.name;
    for (const std::string& alias : region.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
    EXPECT_TRUE(region.year) << region.name;
    EXPECT_FALSE(region.source_citation.empty()) << region.name;
    EXPECT_GT(region.gco2_per_kwh, 0) << region.name;
    EXPECT_LT(region.gco2_per_kwh, 1000) << region.name << ": more than a grid of coal alone";
  }
}

TEST(CarbonTable, FindsCountriesByNameAndCodeAndCloudRegions) {
  const std::vector<CarbonRegion> table = built_in_carbon_table();
  for (const std::string_view name : {"France", "france", "FR", "FRA", "aws:eu-west-3", "azure:francecentral"}) {
    const Result<CarbonIntensity> intensity = find_regional_intensity(table, name);
    ASSERT_TRUE(intensity) << name;
    EXPECT_EQ(intensity->gco2_per_kwh, 56) << name;
    EXPECT_EQ(intensity->year, 2023);
  }
  EXPECT_EQ(find_regional_intensity(table, "gcp:europe-west9")->gco2_per_kwh, 16.3);
}

TEST(CarbonTable, AnUnknownRegionIsAnErrorWithTheNearestNames) {
  const Result<CarbonIntensity> unknown_region_result = find_regional_intensity(built_in_carbon_table(), "Frence");
  ASSERT_FALSE(unknown_region_result);
  EXPECT_EQ(unknown_region_result.error().code, ErrorCode::usage);
  EXPECT_NE(unknown_region_result.error().remedy.find("France"), std::string::npos)
      << unknown_region_result.error().remedy;
  const Result<CarbonIntensity> unprefixed_region_result =
      find_regional_intensity(built_in_carbon_table(), "europe-west9");
  ASSERT_FALSE(unprefixed_region_result);
  EXPECT_NE(unprefixed_region_result.error().remedy.find("gcp:europe-west9"), std::string::npos)
      << unprefixed_region_result.error().remedy;
}

TEST(CarbonTable, ReadsTablesOfTheUser) {
  const Result<std::vector<CarbonRegion>> table = read_carbon_table("gco2_per_kwh,region\n12.5,lab\n", "mine.csv");
  ASSERT_TRUE(table);
  EXPECT_EQ(find_regional_intensity(*table, "lab")->gco2_per_kwh, 12.5);
  EXPECT_EQ(find_regional_intensity(*table, "lab")->source, "mine.csv");
  for (const std::string_view invalid_csv :
       {"", "a,b\n1,2\n", "region,gco2_per_kwh\nlab,many\n", "region,gco2_per_kwh\nlab,-1\n",
        "region,gco2_per_kwh\n,1\n", "region,gco2_per_kwh\nlab\n"})
    EXPECT_FALSE(read_carbon_table(invalid_csv, "wrong.csv")) << invalid_csv;
}

}  // namespace
}  // namespace joulemap::account
