// SPDX-License-Identifier: Apache-2.0
#include "model/background_row.h"

#include <gtest/gtest.h>

namespace joulemap {
namespace {

ReportRow make_row(std::vector<std::string> path, double energy_j, double time_s) {
  ReportRow row;
  row.path = std::move(path);
  row.device = "gpu0";
  row.energy_j = energy_j;
  row.low_j = 0.9 * energy_j;
  row.high_j = 1.1 * energy_j;
  row.time_s = time_s;
  row.power_w = energy_j / time_s;
  return row;
}

// 10 s, of which 4 s probed. Other processes use 20 W throughout.
ReportResult make_probed_report() {
  ReportResult result;
  result.elapsed_s = 10;
  result.probe = ProbeCost{4, {}};
  result.rows = {make_row({"train", "forward"}, 600, 5), make_row({"probe"}, 400, 3),
                 make_row({"background"}, 200, 10)};
  result.groups = {make_row({}, 1200, 18), make_row({"train"}, 600, 5), make_row({"probe"}, 400, 3)};
  return result;
}

TEST(BackgroundRow, WithoutProbingOtherProcessesHaveTheEnergyOfTheRestOfTheTime) {
  const ReportResult report = exclude_probing(make_probed_report());
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_NEAR(*report.rows[0].energy_j, 600, 1e-9);
  EXPECT_NEAR(*report.rows[1].energy_j, 120, 1e-9);
  EXPECT_NEAR(*report.rows[1].high_j, 132, 1e-9);
  EXPECT_NEAR(report.rows[1].time_s, 6, 1e-9);
}

TEST(BackgroundRow, WithoutProbingTheSumOfADeviceIsThatOfItsRows) {
  const ReportResult report = exclude_probing(make_probed_report());
  ASSERT_EQ(report.groups.size(), 2u);
  EXPECT_NEAR(*report.groups[0].energy_j, 720, 1e-9);
  EXPECT_NEAR(report.groups[0].time_s, 11, 1e-9);
  EXPECT_NEAR(*report.groups[0].power_w, 720.0 / 11, 1e-9);
  EXPECT_FALSE(report.groups[0].low_j) << "its interval included probing";
}

TEST(BackgroundRow, ADeviceThatOnlyProbedHasNoSumLeft) {
  ReportResult result = make_probed_report();
  result.rows = {make_row({"probe"}, 400, 3)};
  result.groups = {make_row({}, 400, 3)};
  const ReportResult report = exclude_probing(result);
  EXPECT_TRUE(report.rows.empty());
  EXPECT_TRUE(report.groups.empty());
}

}  // namespace
}  // namespace joulemap
