// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/step_rows.h"

#include <gtest/gtest.h>

namespace joulemap::attribution {
namespace {

ReportRow layer(double energy_j, double waiting_j) {
  ReportRow row;
  row.path = {"train", "forward", "conv"};
  row.device = "gpu0";
  row.count = 1;
  row.time_s = 1;
  row.energy_j = energy_j;
  row.waiting_s = waiting_j / 100;
  row.waiting_j = waiting_j;
  row.waiting_low_j = waiting_j - 1;
  row.waiting_high_j = waiting_j + 1;
  row.cause.emplace();
  row.cause->times_s[EnergyCauseClass::memory] = row.time_s;
  return row;
}

TEST(MergedRows, AddWaitingAndCausesAsWellAsEnergy) {
  const std::vector<ReportRow> rows = merge_rows({{layer(10, 5)}, {layer(20, 7)}});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].energy_j, 30);
  EXPECT_EQ(rows[0].waiting_j, 12);
  EXPECT_EQ(rows[0].waiting_low_j, 10);
  EXPECT_EQ(rows[0].waiting_high_j, 14);
  EXPECT_DOUBLE_EQ(*rows[0].waiting_s, 0.12);
  ASSERT_TRUE(rows[0].cause);
  EXPECT_EQ(rows[0].cause->times_s[EnergyCauseClass::memory], 2);
}

TEST(MergedRows, WaitingThatIsUnknownInOneRecordingIsUnknownInTheSum) {
  ReportRow unknown = layer(20, 7);
  unknown.waiting_j.reset();
  EXPECT_EQ(merge_rows({{layer(10, 5)}, {unknown}})[0].waiting_j, std::nullopt);
}

}  // namespace
}  // namespace joulemap::attribution
