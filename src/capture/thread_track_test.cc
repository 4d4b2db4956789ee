// SPDX-License-Identifier: Apache-2.0
#include "capture/thread_track.h"

#include <gtest/gtest.h>

#include "capture/untracked_cpu_time.h"

namespace joulemap::capture {
namespace {

std::vector<ScopeTally> collect_tallies(ThreadTrack& track) {
  std::vector<ScopeTally> rows;
  std::vector<ScopeTally> totals;
  track.take_tallies(rows);
  sum_scope_tallies(rows, totals);
  return totals;
}

ScopeTally at(const std::vector<ScopeTally>& rows, std::uint32_t scope) {
  for (const ScopeTally& row : rows) {
    if (row.scope == scope) return row;
  }
  return {};
}

TEST(ThreadTrack, TimeBelongsToTheInnermostScopeOnly) {
  ThreadTrack track(1000, 500, CLOCK_THREAD_CPUTIME_ID);
  track.enter(1, {.now_ns = 1100, .thread_cpu_ns = 560});
  track.enter(2, {.now_ns = 1300, .thread_cpu_ns = 760});
  track.leave_to_depth(1, {.now_ns = 1700, .thread_cpu_ns = 1060});
  track.leave_to_depth(0, {.now_ns = 1800, .thread_cpu_ns = 1160});
  const auto rows = collect_tallies(track);
  EXPECT_EQ(at(rows, 0).wall_ns, 100);
  EXPECT_EQ(at(rows, 1).wall_ns, 300);
  EXPECT_EQ(at(rows, 1).cpu_ns, 300);
  EXPECT_EQ(at(rows, 2).wall_ns, 400);
  EXPECT_EQ(at(rows, 2).cpu_ns, 300);
  EXPECT_EQ(at(rows, 1).count, 1u);
  EXPECT_TRUE(collect_tallies(track).empty());
}

TEST(ThreadTrack, SplitsRarelyReadCpuTimeByWallTime) {
  ThreadTrack track(0, 0, CLOCK_THREAD_CPUTIME_ID);
  track.enter(1, {.now_ns = 0});
  track.enter(2, {.now_ns = 300});
  track.leave_to_depth(1, {.now_ns = 1000});
  track.add_time_since_last_update({.now_ns = 1000, .thread_cpu_ns = 500});
  const auto rows = collect_tallies(track);
  EXPECT_EQ(at(rows, 1).cpu_ns, 150);
  EXPECT_EQ(at(rows, 2).cpu_ns, 350);
}

TEST(ThreadTrack, AnInheritedScopeIsBelowScopesThatTheThreadEnters) {
  ThreadTrack track(0, 0, CLOCK_THREAD_CPUTIME_ID);
  track.set_base_scope(7, {.now_ns = 10});
  EXPECT_EQ(track.current_scope(), 7u);
  track.enter(8, {.now_ns = 20});
  track.set_base_scope(0, {.now_ns = 30});
  EXPECT_EQ(track.current_scope(), 8u);
  track.leave_to_depth(0, {.now_ns = 40});
  EXPECT_EQ(track.current_scope(), 0u);
  EXPECT_EQ(at(collect_tallies(track), 7).wall_ns, 10);
}

TEST(ThreadTrack, LeaveClosesScopesThatAnExceptionLeftOpen) {
  ThreadTrack track(0, 0, CLOCK_THREAD_CPUTIME_ID);
  const std::size_t depth = track.enter(1, {.now_ns = 1});
  track.enter(2, {.now_ns = 2});
  track.enter(3, {.now_ns = 3});
  track.leave_to_depth(depth, {.now_ns = 4});
  EXPECT_EQ(track.scope_depth(), 0u);
  track.leave_to_depth(0, {.now_ns = 5});  // a repeated leave has no effect
  EXPECT_EQ(at(collect_tallies(track), 3).wall_ns, 1);
}

TEST(UntrackedCpuTime, CreditsUntrackedTimeAndCorrectsEarlyCredits) {
  UntrackedCpuTime account(1000);
  account.add_tracked_cpu_time(100);
  EXPECT_EQ(account.take_untracked_cpu_ns(1400), 300);
  account.add_tracked_cpu_time(50);  // used earlier, and credited to untracked threads by mistake
  EXPECT_EQ(account.take_untracked_cpu_ns(1430), 0);
  EXPECT_EQ(account.take_untracked_cpu_ns(1500), 50);
}

TEST(ThreadTrack, CountsConsecutiveOperationsOfTheSameScope) {
  ThreadTrack track(0, 0, {});
  track.enter(1, {.now_ns = 0});
  track.replace_innermost_scope(2, {.now_ns = 10}, ThreadTrack::ReentryCounting::counted);
  track.replace_innermost_scope(2, {.now_ns = 30}, ThreadTrack::ReentryCounting::counted);
  track.replace_innermost_scope(2, {.now_ns = 50});
  track.leave_to_depth(0, {.now_ns = 60});
  const ScopeTally operation = at(collect_tallies(track), 2);
  EXPECT_EQ(operation.count, 2u);
  EXPECT_EQ(operation.wall_ns, 50);
}

}  // namespace
}  // namespace joulemap::capture
