// SPDX-License-Identifier: Apache-2.0
#include "account/carbon_series.h"

#include <gtest/gtest.h>

#include "account/carbon_table.h"

namespace joulemap::account {
namespace {

constexpr std::int64_t kHour_ns = 3600 * 1'000'000'000LL;
constexpr std::int64_t kNoon_ns = 1'790'000'400 * 1'000'000'000LL;

DomainEnergy domain(std::string name, Provenance provenance) {
  DomainEnergy domain_energy;
  domain_energy.name = std::move(name);
  domain_energy.joules = 1;
  domain_energy.provenance = provenance;
  domain_energy.is_counted = true;
  return domain_energy;
}

// Two hours: 100 W in the first, 300 W in the second; an estimated domain has the opposite.
ReportResult make_two_hour_report() {
  ReportResult report;
  report.start_unix_ns = kNoon_ns;
  report.elapsed_s = 7200;
  report.slice_s = 3600;
  report.domains = {domain("gpu0", Provenance::measured), domain("package-0", Provenance::estimated)};
  report.power = {{"gpu0", {100.0, 300.0}}, {"package-0", {300.0, 100.0}}};
  return report;
}

std::vector<CarbonPoint> make_rising_series() {
  return {{kNoon_ns, 100}, {kNoon_ns + kHour_ns, 200}, {kNoon_ns + 2 * kHour_ns, 1000}};
}

TEST(CarbonSeries, MeanIsWeightedByPowerOfProvenance) {
  EXPECT_DOUBLE_EQ(*mean_carbon_intensity(make_rising_series(), make_two_hour_report(), Provenance::measured),
                   (100 * 100 + 300 * 200) / 400.0);
  EXPECT_DOUBLE_EQ(*mean_carbon_intensity(make_rising_series(), make_two_hour_report(), Provenance::estimated),
                   (300 * 100 + 100 * 200) / 400.0);
}

TEST(CarbonSeries, UnknownPowerHasNoWeightInTheMean) {
  ReportResult report = make_two_hour_report();
  report.power[0].watts[1].reset();
  EXPECT_DOUBLE_EQ(*mean_carbon_intensity(make_rising_series(), report, Provenance::measured), 100);
}

TEST(CarbonSeries, ProbingHasNoWeightInTheMean) {
  ReportResult report = make_two_hour_report();
  report.probe = ProbeCost{3600, 1, {{3600, 7200}}};
  EXPECT_DOUBLE_EQ(*mean_carbon_intensity(make_rising_series(), report, Provenance::measured), 100);
  report.probe = ProbeCost{3600, 1, {{0, 1800}, {3600, 5400}}};
  EXPECT_DOUBLE_EQ(*mean_carbon_intensity(make_rising_series(), report, Provenance::measured),
                   (50 * 100 + 150 * 200) / 200.0);
}

TEST(CarbonSeries, ARunOutsideOfTheSeriesIsAnError) {
  ReportResult report = make_two_hour_report();
  report.start_unix_ns = kNoon_ns - 1;
  EXPECT_FALSE(mean_carbon_intensity(make_rising_series(), report, Provenance::measured));
  report.start_unix_ns = kNoon_ns + kHour_ns;
  EXPECT_TRUE(mean_carbon_intensity(make_rising_series(), report, Provenance::measured))
      << "the last point covers an hour, too";
  report.start_unix_ns = kNoon_ns + kHour_ns + 1;
  EXPECT_FALSE(mean_carbon_intensity(make_rising_series(), report, Provenance::measured));
  report.start_unix_ns.reset();
  EXPECT_FALSE(mean_carbon_intensity(make_rising_series(), report, Provenance::measured));
}

TEST(CarbonSeries, ReadsUnixAndIsoTimes) {
  const std::string text = "time,gco2_per_kwh\n2026-09-21T14:20:00Z,50\n1790003400,60.5\n2026-09-21 15:30+00:00,70\n";
  ASSERT_TRUE(is_carbon_series(text));
  const Result<std::vector<CarbonPoint>> series = read_carbon_series(text, "grid.csv");
  ASSERT_TRUE(series) << series.error().message;
  ASSERT_EQ(series->size(), 3U);
  EXPECT_EQ(series->at(0).unix_ns, 1'790'000'400'000'000'000);
  EXPECT_EQ(series->at(1).gco2_per_kwh, 60.5);
  EXPECT_EQ(series->at(2).unix_ns, series->at(0).unix_ns + 70 * 60 * 1'000'000'000LL);
}

TEST(CarbonSeries, AByteOrderMarkIsSkipped) {
  const std::string text = "\xef\xbb\xbftime,gco2_per_kwh\r\n1,50\r\n2,60\r\n";
  EXPECT_TRUE(is_carbon_series(text));
  EXPECT_TRUE(read_carbon_series(text, "grid.csv"));
  EXPECT_TRUE(read_carbon_table("\xef\xbb\xbf\"region\",gco2_per_kwh\nlab,12\n", "mine.csv"));
}

TEST(CarbonSeries, RejectsMalformedSeries) {
  for (const std::string_view invalid_csv :
       {"", "time,gco2_per_kwh\n", "time,gco2_per_kwh\n1,2\n", "time,gco2_per_kwh\n1,2\n1,3\n",
        "time,gco2_per_kwh\n2,2\n1,3\n", "time,gco2_per_kwh\n1,2\n3,-4\n", "time,gco2_per_kwh\n1,2\nnan,4\n",
        "time,gco2_per_kwh\n1,2\n2026-13-01T00:00:00Z,4\n", "time,gco2_per_kwh\n1,2\n2026-01-01T00:00:00,4\n",
        "time,gco2_per_kwh\n1,2\n3\n", "time,price\n1,2\n3,4\n"})
    EXPECT_FALSE(read_carbon_series(invalid_csv, "wrong.csv")) << invalid_csv;
  EXPECT_FALSE(is_carbon_series("region,gco2_per_kwh\n"));
}

}  // namespace
}  // namespace joulemap::account
