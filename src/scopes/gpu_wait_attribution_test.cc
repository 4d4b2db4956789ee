// SPDX-License-Identifier: Apache-2.0
#include "scopes/gpu_wait_attribution.h"
#include "base/clock.h"

#include <gtest/gtest.h>

#include <map>

namespace joulemap {
namespace {

// Times `launch`, `start` and `end` in microseconds.
LaunchedKernel kernel(std::uint32_t scope, std::int64_t launch, std::int64_t start, std::int64_t end,
                      std::uint32_t queue = 0) {
  return {.device = 0,
          .queue = queue,
          .scope = scope,
          .launch_ns = launch * 1000,
          .start_ns = start * 1000,
          .end_ns = end * 1000};
}

HostScopeChange make_scope_change(std::int64_t time, std::uint32_t scope, bool synchronizes = false) {
  return {time * 1000, scope, synchronizes};
}

struct WaitTimes {
  std::map<std::uint32_t, std::int64_t> wait_us_by_scope;
  std::map<std::uint32_t, std::int64_t> synchronized_us;
  std::size_t activities = 0;
};

WaitTimes take_wait_times(GpuWaitAttribution& waiting) {
  std::vector<Activity> activities;
  waiting.take_wait_activities(activities);
  WaitTimes wait_times{.wait_us_by_scope = {}, .synchronized_us = {}, .activities = activities.size()};
  for (const Activity& activity : activities) {
    for (const WaitTally& tally : activity.waits) {
      (tally.kind == WaitKind::synchronization ? wait_times.synchronized_us
                                               : wait_times.wait_us_by_scope)[tally.scope] += tally.time_ns / 1000;
    }
  }
  return wait_times;
}

TEST(GpuWaitAttribution, ChargesAGapToTheScopesThatMadeTheHostLateAndThenToTheLaunchThatEndedIt) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 10'000);
  waiting.add(std::vector{make_scope_change(0, 1), make_scope_change(150, 2), make_scope_change(180, 3)});
  waiting.add(kernel(1, 0, 10, 100));
  waiting.add(kernel(4, 190, 200, 300));
  waiting.resolve_idle_gaps(1000 * 1000);
  const WaitTimes wait_times = take_wait_times(waiting);
  // The host was in scope 1 for 150 us and launched a kernel of 90 us there, then 30 us in scope 2 and 10 us in scope
  // 3: the 90 us between the first kernel and the next launch are divided 60 : 30 : 10.
  EXPECT_EQ(wait_times.wait_us_by_scope, (std::map<std::uint32_t, std::int64_t>{{1, 54}, {2, 27}, {3, 9}, {4, 10}}));
}

TEST(GpuWaitAttribution, TimeWhoseKernelsWereLostIsNotCharged) {
  for (const bool is_open : {false, true}) {
    GpuWaitAttribution waiting;
    waiting.set_tracing(0, WaitTracing::on, 10'000);
    waiting.add(std::vector{make_scope_change(0, 1)});
    waiting.add(kernel(1, 0, 0, 100'000));
    if (is_open) {
      // Another profiler begins; its end is not known when the first minute is settled.
      waiting.add_lost_record_span(130'000 * 1000, INT64_MAX);
      waiting.resolve_idle_gaps(60'000 * kNanosecondsPerMillisecond);
      waiting.add(std::vector{make_scope_change(59'000'000, 1)});
    }
    waiting.add_lost_record_span(130'000 * 1000, 100'000 * kNanosecondsPerMillisecond);
    waiting.add(kernel(1, 100'040'000, 100'040'000, 100'050'000));
    waiting.resolve_idle_gaps(101'000 * kNanosecondsPerMillisecond);
    EXPECT_EQ(take_wait_times(waiting).wait_us_by_scope, (std::map<std::uint32_t, std::int64_t>{{1, 30'000 + 40'000}}));
  }
}

// A loss with a kernel of 500 us, then four layers that take 200 us of host time and 50 us of GPU time each: the GPU
// first runs out of queued work in the third layer.
TEST(GpuWaitAttribution, ChargesEqualLayersEquallyAlthoughTheGpuHadWorkQueuedDuringTheFirstOnes) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 0);
  std::int64_t host = 0;
  std::int64_t gpu = 0;
  const auto run = [&](std::uint32_t scope, std::int64_t host_us, std::int64_t gpu_us) {
    waiting.add(std::vector{make_scope_change(host, scope)});
    host += host_us;
    const std::int64_t start = std::max(host, gpu);
    waiting.add(kernel(scope, host, start, start + gpu_us));
    gpu = start + gpu_us;
  };
  for (int step = 0; step < 40; ++step) {
    run(9, 20, 500);
    for (std::uint32_t layer = 1; layer <= 4; ++layer) run(layer, 200, 50);
  }
  waiting.resolve_idle_gaps(1000 * kNanosecondsPerMillisecond);
  WaitTimes wait_times = take_wait_times(waiting);
  double total_us = 0;
  for (const auto& [scope, waited_us] : wait_times.wait_us_by_scope) total_us += static_cast<double>(waited_us);
  EXPECT_FALSE(wait_times.wait_us_by_scope.contains(9)) << "it gives the GPU more to do than it takes";
  for (std::uint32_t layer = 1; layer <= 4; ++layer)
    EXPECT_NEAR(static_cast<double>(wait_times.wait_us_by_scope[layer]), total_us / 4, 0.1 * total_us / 4) << layer;
}

// Forward passes of four layers that all make the GPU wait; the host waits for the result of each pass.
TEST(GpuWaitAttribution, ChargesEqualLayersEquallyBetweenTwoSynchronizations) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 0);
  std::int64_t now_us = 0;
  for (int pass = 0; pass < 20; ++pass) {
    for (std::uint32_t layer = 1; layer <= 4; ++layer) {
      waiting.add(std::vector{make_scope_change(now_us, layer)});
      now_us += 200;
      waiting.add(kernel(layer, now_us, now_us, now_us + 50));
    }
    waiting.add(std::vector{make_scope_change(now_us, 5, true), make_scope_change(now_us + 50, 5)});
    now_us += 51;
  }
  waiting.resolve_idle_gaps(1000 * kNanosecondsPerMillisecond);
  WaitTimes wait_times = take_wait_times(waiting);
  for (std::uint32_t layer = 2; layer <= 4; ++layer)
    EXPECT_NEAR(static_cast<double>(wait_times.wait_us_by_scope[layer]), 20 * 150, 100) << layer;
}

// A program that reads its loss in each step: the GPU is idle afterwards, while data are loaded. Layers that are slow
// to launch later in the step, while a large kernel runs, did not cause the idle time.
TEST(GpuWaitAttribution, ChargesWhatFollowsASynchronizationAndNotWhatComesAfterTheGap) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 0);
  std::int64_t now_us = 0;
  for (int step = 0; step < 10; ++step) {
    waiting.add(std::vector{make_scope_change(now_us, 1), make_scope_change(now_us + 1000, 2),
                            make_scope_change(now_us + 1010, 3)});
    waiting.add(kernel(2, now_us + 1010, now_us + 1010, now_us + 5000));
    waiting.add(kernel(3, now_us + 2010, now_us + 5000, now_us + 5100));
    waiting.add(std::vector{make_scope_change(now_us + 2010, 4, true), make_scope_change(now_us + 5100, 4),
                            make_scope_change(now_us + 5101, 1)});
    now_us += 5101;
  }
  waiting.resolve_idle_gaps(1000 * kNanosecondsPerMillisecond);
  const WaitTimes wait_times = take_wait_times(waiting);
  EXPECT_NEAR(static_cast<double>(wait_times.wait_us_by_scope.at(1)), 10 * 1000, 100);
  EXPECT_FALSE(wait_times.wait_us_by_scope.contains(3));
}

// A program that synchronizes for its timing after it has loaded a batch: the GPU has been idle for long by then.
TEST(GpuWaitAttribution, ChargesTheLoaderAlthoughTheHostSynchronizedWithAnIdleGpuAfterIt) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 0);
  waiting.add(std::vector{make_scope_change(0, 1), make_scope_change(10'000, 2), make_scope_change(10'001, 2, true),
                          make_scope_change(10'005, 2), make_scope_change(10'010, 7)});
  waiting.add(kernel(1, 0, 0, 1000));
  waiting.add(kernel(7, 10'060, 10'060, 10'100));
  waiting.resolve_idle_gaps(100 * kNanosecondsPerMillisecond);
  WaitTimes wait_times = take_wait_times(waiting);
  EXPECT_NEAR(static_cast<double>(wait_times.wait_us_by_scope[1]), 9000, 20);
  EXPECT_NEAR(static_cast<double>(wait_times.wait_us_by_scope[7]), 50, 5);
}

TEST(GpuWaitAttribution, CountsNoKernelsThatWereLaunchedBeforeTracingBegan) {
  GpuWaitAttribution waiting;
  waiting.add(std::vector{make_scope_change(0, 1), make_scope_change(1000, 2)});
  waiting.set_tracing(900 * 1000, WaitTracing::on, 1200 * 1000);
  waiting.add(kernel(1, 100, 1000, 1500));  // would make its scope early by 0.5 ms
  waiting.add(kernel(2, 1950, 1950, 2000));
  waiting.resolve_idle_gaps(10 * kNanosecondsPerMillisecond);
  WaitTimes wait_times = take_wait_times(waiting);
  EXPECT_NEAR(static_cast<double>(wait_times.wait_us_by_scope[1]), 450 * 0.1 / 1.05, 2);
  EXPECT_NEAR(static_cast<double>(wait_times.wait_us_by_scope[2]), 450 * 0.95 / 1.05, 2);
}

TEST(GpuWaitAttribution, ForgetsScopesThatWereLateLongAgo) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 0);
  std::int64_t now_us = 0;
  const auto run = [&](std::uint32_t scope, int steps) {
    for (int step = 0; step < steps; ++step, now_us += 100) {
      waiting.add(std::vector{make_scope_change(now_us, scope)});
      waiting.add(kernel(scope, now_us + 90, now_us + 90, now_us + 100));
    }
  };
  run(1, 10'000);
  waiting.resolve_idle_gaps(now_us * 1000);
  const auto first_us = static_cast<double>(take_wait_times(waiting).wait_us_by_scope[1]);
  run(2, 10'000);
  waiting.resolve_idle_gaps(now_us * 1000);
  WaitTimes wait_times = take_wait_times(waiting);
  EXPECT_NEAR(static_cast<double>(wait_times.wait_us_by_scope[2]), first_us, 0.15 * first_us);
}

TEST(GpuWaitAttribution, GivesTheGapBeforeAQueuedKernelToTheScopeThatLaunchedIt) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 10'000);
  waiting.add(std::vector{make_scope_change(0, 1), make_scope_change(20, 9)});
  waiting.add(kernel(1, 0, 10, 100));
  waiting.add(kernel(2, 5, 102, 200));
  waiting.resolve_idle_gaps(1000 * 1000);
  EXPECT_EQ(take_wait_times(waiting).wait_us_by_scope, (std::map<std::uint32_t, std::int64_t>{{2, 2}}));
}

TEST(GpuWaitAttribution, ChargesTheRestOfAScopeThatSynchronizedToTheSynchronization) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 10'000);
  waiting.add(std::vector{make_scope_change(0, 1), make_scope_change(50, 1, true), make_scope_change(110, 1),
                          make_scope_change(150, 2)});
  waiting.add(kernel(1, 0, 10, 100));
  waiting.add(kernel(2, 170, 170, 300));
  waiting.resolve_idle_gaps(1000 * 1000);
  const WaitTimes wait_times = take_wait_times(waiting);
  EXPECT_EQ(wait_times.synchronized_us, (std::map<std::uint32_t, std::int64_t>{{1, 50}}));
  EXPECT_EQ(wait_times.wait_us_by_scope, (std::map<std::uint32_t, std::int64_t>{{2, 20}}));
}

TEST(GpuWaitAttribution, SeesNoGapWhileAnotherStreamIsBusy) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 10'000);
  waiting.add(std::vector{make_scope_change(0, 1)});
  waiting.add(kernel(1, 0, 10, 100, 0));
  waiting.add(kernel(1, 0, 50, 250, 1));
  waiting.add(kernel(1, 0, 200, 300, 0));
  waiting.resolve_idle_gaps(1000 * 1000);
  EXPECT_TRUE(take_wait_times(waiting).wait_us_by_scope.empty());
}

TEST(GpuWaitAttribution, DoesNotDependOnTheOrderInWhichKernelsArrive) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 10'000);
  waiting.add(std::vector{make_scope_change(0, 1)});
  waiting.add(kernel(1, 350, 350, 400));
  waiting.add(kernel(1, 0, 10, 100));
  waiting.add(kernel(1, 150, 150, 300));
  waiting.resolve_idle_gaps(1000 * 1000);
  EXPECT_EQ(take_wait_times(waiting).wait_us_by_scope, (std::map<std::uint32_t, std::int64_t>{{1, 100}}));
}

TEST(GpuWaitAttribution, AcceptsEdgesThatAreReportedLate) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 10'000);
  waiting.add(std::vector{make_scope_change(0, 1), make_scope_change(180, 3)});
  waiting.add(std::vector{make_scope_change(150, 2)});
  waiting.add(kernel(1, 0, 10, 100));
  waiting.add(kernel(3, 200, 200, 300));
  waiting.resolve_idle_gaps(1000 * 1000);
  EXPECT_EQ(take_wait_times(waiting).wait_us_by_scope,
            (std::map<std::uint32_t, std::int64_t>{{1, 54}, {2, 27}, {3, 18}}));
}

TEST(GpuWaitAttribution, CountsNothingWhileKernelsAreNotTraced) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 10'000);
  waiting.add(std::vector{make_scope_change(0, 1)});
  waiting.add(kernel(1, 0, 10, 100));
  waiting.set_tracing(120 * 1000, WaitTracing::off, 0);
  waiting.set_tracing(500 * 1000, WaitTracing::on, 560 * 1000);
  waiting.add(std::vector{make_scope_change(500, 2)});
  waiting.add(kernel(2, 600, 600, 700));
  waiting.add(kernel(2, 730, 730, 800));
  waiting.resolve_idle_gaps(1000 * 1000);
  EXPECT_EQ(take_wait_times(waiting).wait_us_by_scope, (std::map<std::uint32_t, std::int64_t>{{1, 20}, {2, 40 + 30}}))
      << "what was launched before ran until 560 us at the latest";
}

TEST(GpuWaitAttribution, GivesALongGapAnIntervalOfItsOwn) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 10'000);
  waiting.add(std::vector{make_scope_change(0, 1)});
  waiting.add(kernel(1, 0, 10, 100));
  waiting.add(kernel(1, 150, 150, 300));
  waiting.add(kernel(1, 90'000, 90'000, 91'000));
  waiting.resolve_idle_gaps(200 * kNanosecondsPerMillisecond);
  std::vector<Activity> activities;
  waiting.take_wait_activities(activities);
  ASSERT_EQ(activities.size(), 2u);
  EXPECT_EQ(activities[0].begin_ns, 100'000);
  EXPECT_EQ(activities[0].end_ns, 150'000);
  EXPECT_EQ(activities[1].begin_ns, 300'000);
  EXPECT_EQ(activities[1].end_ns, 90 * kNanosecondsPerMillisecond);
}

TEST(GpuWaitAttribution, ResolvesAGapThatGoesOnForLongerThanAnyKernel) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 10'000);
  waiting.add(std::vector{make_scope_change(0, 1)});
  waiting.add(kernel(1, 0, 10, 100));
  waiting.resolve_idle_gaps(30'000 * kNanosecondsPerMillisecond);
  EXPECT_EQ(take_wait_times(waiting).wait_us_by_scope[1], 20'000'000 - 100);
  waiting.finish(31'000 * kNanosecondsPerMillisecond);
  EXPECT_EQ(take_wait_times(waiting).wait_us_by_scope[1], 11'000'000);
}

TEST(GpuWaitAttribution, ChargesNoGapsDuringWarmUpAndKnowsTheLastKernelAfterIt) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::warm_up, 10'000);
  waiting.add(std::vector{make_scope_change(0, 1), make_scope_change(250, 2)});
  waiting.add(kernel(1, 0, 10, 20));
  waiting.add(kernel(1, 90, 100, 120));
  waiting.set_tracing(200 * 1000, WaitTracing::on, 10'000 * 1000);
  waiting.add(kernel(3, 290, 300, 400));
  waiting.resolve_idle_gaps(1000 * 1000);
  EXPECT_EQ(take_wait_times(waiting).wait_us_by_scope,
            (std::map<std::uint32_t, std::int64_t>{{1, 50}, {2, 40}, {3, 10}}));
}

TEST(GpuWaitAttribution, ChargesTheGapsOfADeviceWhoseFirstKernelCameLongAfterTracingBegan) {
  GpuWaitAttribution waiting;
  waiting.set_tracing(0, WaitTracing::on, 10'000);
  waiting.resolve_idle_gaps(50 * kNanosecondsPerMillisecond);
  waiting.add(std::vector{make_scope_change(99'000, 1)});
  waiting.add(kernel(1, 100'000, 100'010, 100'020));
  waiting.add(kernel(2, 100'060, 100'070, 100'080));
  waiting.resolve_idle_gaps(1000 * kNanosecondsPerMillisecond);
  EXPECT_EQ(take_wait_times(waiting).wait_us_by_scope, (std::map<std::uint32_t, std::int64_t>{{1, 40}, {2, 10}}));
}

TEST(GpuWaitAttribution, KeepsTheGapsOfUnusualStepsApart) {
  GpuWaitAttribution waiting;
  waiting.add(std::vector{make_scope_change(0, 1)});
  waiting.set_tracing(0, WaitTracing::separate_step, 10'000);
  waiting.add(kernel(1, 0, 10, 20));
  waiting.add(kernel(1, 20, 70, 80));
  waiting.set_tracing(100 * 1000, WaitTracing::separate_step, 0);
  waiting.add(kernel(1, 100, 110, 120));
  waiting.set_tracing(200 * 1000, WaitTracing::on, 0);
  waiting.add(kernel(1, 200, 210, 220));
  waiting.resolve_idle_gaps(1000 * 1000);
  std::vector<Activity> activities;
  waiting.take_wait_activities(activities);
  ASSERT_EQ(activities.size(), 3u);
  const auto waited_us = [](const Activity& activity) { return activity.waits.front().time_ns / 1000; };
  EXPECT_EQ(waited_us(activities[0]), 10);
  EXPECT_EQ(waited_us(activities[1]), 50 + 20);
  EXPECT_EQ(activities[1].end_ns, 100 * 1000);
  EXPECT_EQ(waited_us(activities[2]), 10 + 80);
}

}  // namespace
}  // namespace joulemap
