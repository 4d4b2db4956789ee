// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/kernel_timeline.h"
#include "base/clock.h"

#include <gtest/gtest.h>

#include <random>

namespace joulemap::attribution {
namespace {

TEST(KernelTimeline, ReturnsBusyTimeOfEachClassBetweenEdges) {
  KernelTimeline timeline(2);
  timeline.add_kernel(50 * kNanosecondsPerMillisecond, 150 * kNanosecondsPerMillisecond, 0);
  timeline.add_kernel(160 * kNanosecondsPerMillisecond, 190 * kNanosecondsPerMillisecond, 1);
  timeline.finish();
  const BusyTimeMatrix rows =
      timeline.busy_times(std::vector<std::int64_t>{0, kNanosecondsPerSecond / 10, 2 * kNanosecondsPerSecond / 10});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_NEAR(rows[0][0], 0.05, 1e-12);
  EXPECT_NEAR(rows[0][2], 0.05, 1e-12);
  EXPECT_NEAR(rows[1][0], 0.05, 1e-12);
  EXPECT_NEAR(rows[1][1], 0.03, 1e-12);
  EXPECT_NEAR(rows[1][2], 0.02, 1e-12);
}

// Compares with a brute-force evaluation of every millisecond.
TEST(KernelTimeline, ConcurrentKernelsShareTheTime) {
  constexpr std::uint64_t kSeed = 5;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 50; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << " round " << round);
    KernelTimeline timeline(3);
    std::vector<std::vector<std::size_t>> running_kinds(100);
    for (int i = 0; i < 30; ++i) {
      const std::size_t start = random() % 90;
      const std::size_t length = 1 + random() % 10;
      const auto kind = static_cast<std::uint16_t>(random() % 3);
      timeline.add_kernel(static_cast<std::int64_t>(start) * kNanosecondsPerMillisecond,
                          static_cast<std::int64_t>(start + length) * kNanosecondsPerMillisecond, kind);
      for (std::size_t millisecond = start; millisecond < start + length; ++millisecond)
        running_kinds[millisecond].push_back(kind);
    }
    timeline.finish();
    const std::vector<std::int64_t> edges = {0, 20 * kNanosecondsPerMillisecond, 37 * kNanosecondsPerMillisecond,
                                             100 * kNanosecondsPerMillisecond};
    const BusyTimeMatrix rows = timeline.busy_times(edges);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      std::vector<double> expected(4);
      for (auto millisecond = static_cast<std::size_t>(edges[row] / kNanosecondsPerMillisecond);
           millisecond < static_cast<std::size_t>(edges[row + 1] / kNanosecondsPerMillisecond); ++millisecond) {
        for (const std::size_t kind : running_kinds[millisecond])
          expected[kind] += 0.001 / static_cast<double>(running_kinds[millisecond].size());
        if (running_kinds[millisecond].empty()) expected[3] += 0.001;
      }
      for (std::size_t column = 0; column < 4; ++column) EXPECT_NEAR(rows[row][column], expected[column], 1e-9);
    }
  }
}

TEST(KernelTimeline, TalliesAreSpreadEvenlyAndMakeCoarseObservations) {
  KernelTimeline timeline(1);
  timeline.add_kernel(0, kNanosecondsPerSecond / 2, 0);
  timeline.add_busy_sum(kNanosecondsPerSecond, 5 * kNanosecondsPerSecond, 0, 2);
  timeline.add_busy_sum(5 * kNanosecondsPerSecond, 9 * kNanosecondsPerSecond, 0,
                        8);  // 8 s in 4 s: two concurrent streams
  timeline.finish();
  std::vector<std::int64_t> edges;
  for (int i = 0; i <= 10; ++i) edges.push_back(i * kNanosecondsPerSecond);
  std::vector<std::int64_t> observation_edges;
  for (const std::size_t edge : timeline.select_observation_edges(edges)) observation_edges.push_back(edges[edge]);
  EXPECT_EQ(observation_edges, (std::vector<std::int64_t>{0, kNanosecondsPerSecond, 2 * kNanosecondsPerSecond,
                                                          5 * kNanosecondsPerSecond, 6 * kNanosecondsPerSecond,
                                                          9 * kNanosecondsPerSecond, 10 * kNanosecondsPerSecond}));
  const BusyTimeMatrix rows = timeline.busy_times(edges);
  EXPECT_NEAR(rows[2][0], 0.5, 1e-12);
  EXPECT_NEAR(rows[6][0], 1, 1e-12);  // busy time is capped at elapsed time
  EXPECT_NEAR(rows[6][1], 0, 1e-12);
}

TEST(KernelTimeline, IgnoresInvalidTimes) {
  KernelTimeline timeline(1);
  timeline.add_kernel(5, 5, 0);
  timeline.add_kernel(9, 3, 0);
  timeline.add_kernel(0, 1, 7);
  timeline.finish();
  EXPECT_TRUE(timeline.empty());
  EXPECT_EQ(timeline.busy_times({}).size(), 0u);
}

}  // namespace
}  // namespace joulemap::attribution
