// SPDX-License-Identifier: Apache-2.0
#include "statistics/post_hoc.h"

#include <gtest/gtest.h>

#include <cmath>

#include "statistics/ranks.h"

namespace joulemap::statistics {
namespace {

TEST(NormalRangeTail, RangeTailIsTheNormalTailForTwoValuesHoweverSmall) {
  for (const double range_threshold : {0.1, 1.0, 3.0, 8.0, 15.0}) {
    EXPECT_NEAR(studentized_range_tail(range_threshold, 2) / two_sided_normal_p(range_threshold * M_SQRT1_2), 1, 1e-10)
        << range_threshold;
  }
  EXPECT_EQ(studentized_range_tail(0, 4), 1);
  EXPECT_LT(studentized_range_tail(3, 3), studentized_range_tail(3, 4));
}

TEST(PostHocTests, PostHocTestsFindTheTreatmentThatDiffers) {
  const std::vector<std::vector<double>> groups{
      {1, 2, 3, 4, 5, 6}, {1.5, 2.5, 3.5, 4.5, 5.5, 6.5}, {21, 22, 23, 24, 25, 26}, {}};
  const std::vector<PairComparison> pairs = dunn_test(groups);
  ASSERT_EQ(pairs.size(), 3U);
  EXPECT_GT(pairs[0].p, 0.5);
  EXPECT_LT(pairs[1].p, 0.01);
  EXPECT_LT(pairs[2].p, 0.02);
  EXPECT_LT(pairs[1].mean_rank_difference, 0);

  const std::vector<std::vector<double>> blocks(9, {1, 1, 5});
  const std::vector<PairComparison> nemenyi_pairs = nemenyi_test(blocks);
  ASSERT_EQ(nemenyi_pairs.size(), 3U);
  EXPECT_EQ(nemenyi_pairs[0].p, 1);
  EXPECT_LT(nemenyi_pairs[1].p, 0.01);
  EXPECT_EQ(nemenyi_pairs[1].p, nemenyi_pairs[2].p);
}

TEST(PostHocTests, PostHocTestsAreNotSignificantForEqualValues) {
  const std::vector<std::vector<double>> constant_groups(3, std::vector<double>(4, 2.0));
  for (const PairComparison& pair : dunn_test(constant_groups)) EXPECT_EQ(pair.p, 1);
  for (const PairComparison& pair : nemenyi_test(constant_groups)) EXPECT_EQ(pair.p, 1);
  EXPECT_TRUE(dunn_test({}).empty());
  EXPECT_TRUE(nemenyi_test({}).empty());
}

}  // namespace
}  // namespace joulemap::statistics
