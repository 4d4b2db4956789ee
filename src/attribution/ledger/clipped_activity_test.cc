// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/clipped_activity.h"

#include <gtest/gtest.h>

namespace joulemap::attribution {
namespace {

Activity make_activity_10_to_20() {
  Activity activity{.begin_ns = 10, .end_ns = 20};
  activity.scopes = {{1, 0, ScopeKind::region, "here"}};
  activity.scope_tallies = {{1, 10, 4, 100, 80, 20}};
  activity.kernel_tallies = {{0, 0, 1, 6, 8}};
  activity.kernels = {{11, 13, 0, 0, 1, 1, 0}, {14, 17, 0, 0, 1, 2, 0}, {18, 19, 0, 0, 1, 3, 0}};
  activity.steps = {{1, 9, 14, 0, 2, 0, true, true}, {2, 14, 20, 0, 2, 0, true, true}};
  return activity;
}

TEST(ClippedActivity, ScalesTalliesByTheTimeInsideTheSpan) {
  const Activity clipped_activity = clip_activity(make_activity_10_to_20(), {15, 100});
  EXPECT_EQ(clipped_activity.begin_ns, 15);
  EXPECT_EQ(clipped_activity.end_ns, 20);
  EXPECT_EQ(clipped_activity.scope_tallies[0].count, 5u);
  EXPECT_EQ(clipped_activity.scope_tallies[0].cpu_ns, 40);
  EXPECT_EQ(clipped_activity.scope_tallies[0].helper_threads_cpu_ns, 10);
  EXPECT_EQ(clipped_activity.kernel_tallies[0].count, 3u);
  EXPECT_EQ(clipped_activity.kernel_tallies[0].time_ns, 4);
}

TEST(ClippedActivity, CutsSingleKernelsAtTheEdge) {
  const Activity clipped_activity = clip_activity(make_activity_10_to_20(), {15, 100});
  ASSERT_EQ(clipped_activity.kernels.size(), 2u);
  EXPECT_EQ(clipped_activity.kernels[0].start_ns, 15);
  EXPECT_EQ(clipped_activity.kernels[0].end_ns, 17);
  ASSERT_EQ(clipped_activity.steps.size(), 1u);
  EXPECT_EQ(clipped_activity.steps[0].number, 2);
}

TEST(ClippedActivity, DropsEverythingButNamesOutsideTheSpan) {
  const Activity clipped_activity = clip_activity(make_activity_10_to_20(), {30, 40});
  EXPECT_EQ(clipped_activity.scopes.size(), 1u);
  EXPECT_TRUE(clipped_activity.scope_tallies.empty());
  EXPECT_TRUE(clipped_activity.kernel_tallies.empty());
  EXPECT_TRUE(clipped_activity.kernels.empty());
}

TEST(ClippedActivity, PreservesScopeSharesOfTheWholeRun) {
  Activity activity_without_span;
  activity_without_span.shares = {{1, 2, 3, 1000}};
  EXPECT_EQ(clip_activity(activity_without_span, {30, 40}).shares.size(), 1u);
  Activity activity_with_span = make_activity_10_to_20();
  activity_with_span.shares = activity_without_span.shares;
  EXPECT_TRUE(clip_activity(activity_with_span, {30, 40}).shares.empty());
}

TEST(ClippedActivity, IsUnchangedWithinTheSpan) {
  EXPECT_TRUE(is_within_span(make_activity_10_to_20(), {10, 20}));
  EXPECT_FALSE(is_within_span(make_activity_10_to_20(), {11, 20}));
}

// 100 steps of 10 ns; the first two are traced and extrapolate to all.
TracedSteps make_lightly_traced_steps() {
  TracedSteps steps;
  for (std::int64_t i = 0; i < 100; ++i) {
    steps.add(
        {.number = i, .begin_ns = 10 * i, .end_ns = 10 * (i + 1), .kernels = i < 2 ? 3U : 0U, .is_traced = i < 2});
  }
  return steps;
}

TEST(ClippedActivity, AWindowWithoutTracedStepsHasTheKernelsThatExtrapolateToIt) {
  Activity traced_activity{.begin_ns = 0, .end_ns = 20};
  traced_activity.scope_tallies = {{1, 10, 4, 100, 80, 20}};
  traced_activity.kernel_tallies = {{0, 0, 1, 6, 8}};
  const std::vector<Activity> parts =
      clip_activity(traced_activity, {500, 600}, make_lightly_traced_steps(), ScopePaths());
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_TRUE(parts[0].scope_tallies.empty());
  EXPECT_EQ(parts[1].begin_ns, 500);
  EXPECT_EQ(parts[1].end_ns, 600);
  ASSERT_EQ(parts[1].kernel_tallies.size(), 1u);
  EXPECT_EQ(parts[1].kernel_tallies[0].count, 30u);   // 3 per step, 10 steps
  EXPECT_EQ(parts[1].kernel_tallies[0].time_ns, 40);  // 4 per step
}

// The first of ten steps compiles for 1000 ns; the others take 10 ns each. All steps run the same kernels.
TEST(ClippedActivity, AStepThatTakesFarLongerThanTheOthersHasNoMoreKernels) {
  TracedSteps steps;
  for (std::int64_t i = 0; i < 10; ++i) {
    const std::int64_t begin_ns = i == 0 ? 0 : 1000 + 10 * (i - 1);
    const std::int64_t end_ns = 1000 + 10 * i;
    steps.add({.number = i, .begin_ns = begin_ns, .end_ns = end_ns, .kernels = i < 8 ? 3U : 0U, .is_traced = i < 8});
  }
  Activity traced_activity{.begin_ns = 0, .end_ns = 1070};
  traced_activity.kernel_tallies = {{0, 0, 1, 24, 80}};
  const std::vector<Activity> parts = clip_activity(traced_activity, {1000, 1090}, steps, ScopePaths());
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].kernel_tallies[0].time_ns, 90);  // 10 for each of the nine steps in the window
}

TEST(ClippedActivity, ConsecutiveWindowsContainAllExtrapolatedKernels) {
  Activity traced_activity{.begin_ns = 0, .end_ns = 20};
  traced_activity.kernel_tallies = {{0, 0, 1, 600, 800}};
  std::int64_t time_ns = 0;
  for (std::int64_t window_begin_ns = 0; window_begin_ns < 1000; window_begin_ns += 50) {
    for (const Activity& part : clip_activity(traced_activity, {window_begin_ns, window_begin_ns + 50},
                                              make_lightly_traced_steps(), ScopePaths())) {
      for (const KernelTally& tally : part.kernel_tallies) time_ns += tally.time_ns;
    }
  }
  EXPECT_EQ(time_ns, 40'000);
}

}  // namespace
}  // namespace joulemap::attribution
