// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/idle_gaps.h"

#include <gtest/gtest.h>

#include <vector>

#include "statistics/random.h"

namespace joulemap::attribution {
namespace {

std::vector<TimeSpan> collect_spans_outside_gaps(const std::vector<TimeSpan>& gaps, TimeSpan interval) {
  std::vector<TimeSpan> parts;
  double shares = 0;
  for_each_span_outside_gaps(gaps, interval, [&](TimeSpan part, double share) {
    EXPECT_LT(part.begin_ns, part.end_ns);
    parts.push_back(part);
    shares += share;
  });
  EXPECT_NEAR(shares, 1, 1e-9);
  return parts;
}

bool is_equal_span(TimeSpan a, TimeSpan b) { return a.begin_ns == b.begin_ns && a.end_ns == b.end_ns; }

TEST(IdleGaps, CutTheIntervalIntoTheTimesBetweenThem) {
  const std::vector<TimeSpan> parts = collect_spans_outside_gaps({{-50, 10}, {30, 60}, {90, 200}}, {0, 100});
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_TRUE(is_equal_span(parts[0], {10, 30}));
  EXPECT_TRUE(is_equal_span(parts[1], {60, 90}));
}

TEST(IdleGaps, ShortGapsDoNotMatter) {
  EXPECT_EQ(collect_spans_outside_gaps({{10, 14}, {40, 44}}, {0, 100}).size(), 1U);
}

TEST(IdleGaps, AnIntervalThatIsAllGapStaysWhole) {
  const std::vector<TimeSpan> parts = collect_spans_outside_gaps({{-10, 110}}, {0, 100});
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_TRUE(is_equal_span(parts[0], {0, 100}));
}

TEST(IdleGaps, SpansOutsideGapsNeverLieInAGap) {
  statistics::Random random(20261118);
  for (int round = 0; round < 1000; ++round) {
    std::vector<TimeSpan> gaps;
    std::int64_t at_ns = -100;
    while (at_ns < 1200) {
      const std::int64_t begin_ns = at_ns + static_cast<std::int64_t>(random.uniform_below(200));
      at_ns = begin_ns + 60 + static_cast<std::int64_t>(random.uniform_below(300));
      gaps.push_back({begin_ns, at_ns});
    }
    const std::vector<TimeSpan> parts = collect_spans_outside_gaps(gaps, {0, 1000});
    if (parts.size() == 1 && is_equal_span(parts[0], {0, 1000})) continue;
    for (const TimeSpan part : parts) {
      for (const TimeSpan gap : gaps) {
        const std::int64_t inside_ns =
            std::min(gap.end_ns, std::int64_t{1000}) - std::max(gap.begin_ns, std::int64_t{0});
        if (inside_ns < 50) continue;  // too short to be cut out
        EXPECT_TRUE(gap.end_ns <= part.begin_ns || gap.begin_ns >= part.end_ns) << "round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace joulemap::attribution
