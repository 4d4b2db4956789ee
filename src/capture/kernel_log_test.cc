// SPDX-License-Identifier: Apache-2.0
#include "capture/kernel_log.h"

#include <gtest/gtest.h>

#include <map>

#include "base/clock.h"
#include "capture/kernel_record_source.h"

#include <climits>

namespace joulemap::capture {
namespace {

KernelActivityRecord kernel(std::uint32_t correlation, std::int64_t start_ns, std::string_view name = "gemm") {
  KernelActivityRecord kernel_record;
  kernel_record.name = name;
  kernel_record.grid = {64, 1, 1};
  kernel_record.block = {128, 1, 1};
  kernel_record.correlation = correlation;
  kernel_record.start_ns = start_ns;
  kernel_record.end_ns = start_ns + 1000;
  return kernel_record;
}

Activity collect_all_kernels(KernelLog& log) {
  Activity activity;
  activity.end_ns = INT64_C(1) << 40;
  log.collect_kernel_activity(activity, INT64_MAX, true);
  return activity;
}

TEST(KernelLog, LinksAKernelToItsScopeAndStep) {
  KernelLog log;
  log.set_device(0, "GPU-1");
  log.begin_step(1, 0, 0, true);
  log.on_launch(11, 5, 1, 0);
  log.begin_step(2, 1, kNanosecondsPerMillisecond, true);
  log.on_launch(12, 6, 2, 0);
  log.on_kernel(kernel(12, 2 * kNanosecondsPerMillisecond));
  log.on_kernel(kernel(11, 3 * kNanosecondsPerMillisecond));  // arrives after the next step's kernel
  const Activity activity = collect_all_kernels(log);
  ASSERT_EQ(activity.steps.size(), 2u);
  EXPECT_EQ(activity.steps[0].kernels, 1u);
  EXPECT_EQ(activity.steps[0].summed_kernel_ns, 1000);
  EXPECT_EQ(activity.steps[0].end_ns, kNanosecondsPerMillisecond);
  ASSERT_EQ(activity.kernels.size(), 2u);
  EXPECT_EQ(activity.kernels[0].scope, 5u);
  EXPECT_EQ(activity.kernels[1].scope, 6u);
  ASSERT_EQ(activity.classes.size(), 1u);
  EXPECT_EQ(activity.queues.at(0).device, "GPU-1");
  EXPECT_EQ(activity.kernel_tallies.size(), 2u);
}

TEST(KernelLog, OmitsLaunchesOfTheRecorder) {
  KernelLog log;
  log.begin_step(1, 0, 0, true);
  log.on_launch(11, 5, 1, 0);
  log.on_launch(12, kJoulemapScope, 1, 0);
  log.on_kernel(kernel(11, kNanosecondsPerMillisecond));
  log.on_kernel(kernel(12, kNanosecondsPerMillisecond));
  const Activity activity = collect_all_kernels(log);
  EXPECT_EQ(activity.kernels.size(), 1u);
  EXPECT_EQ(activity.steps.at(0).kernels, 1u);
  EXPECT_EQ(log.counts().kernels_without_scope, 0u);
}

TEST(KernelLog, KernelsLaunchedAfterAStepBelongToNoStep) {
  KernelLog log;
  log.begin_step(1, 0, 0, true);
  log.on_launch(11, 5, 1, 0);
  log.end_step(kNanosecondsPerMillisecond);
  log.on_launch(12, 6, 0, 0);
  log.on_kernel(kernel(12, 3 * kNanosecondsPerMillisecond));
  log.on_kernel(kernel(11, 2 * kNanosecondsPerMillisecond));
  log.begin_step(2, 1, 9 * kNanosecondsPerMillisecond, true);
  const Activity activity = collect_all_kernels(log);
  ASSERT_EQ(activity.steps.size(), 2u);
  EXPECT_EQ(activity.steps[0].end_ns, kNanosecondsPerMillisecond);
  EXPECT_EQ(activity.steps[0].kernels, 1u);
  EXPECT_EQ(activity.steps[1].kernels, 0u);
  EXPECT_EQ(activity.kernels.size(), 2u);
}

TEST(KernelLog, AClassIsANameAndLaunchGeometry) {
  KernelLog log;
  KernelActivityRecord kernel_record = kernel(1, 0);
  log.on_kernel(kernel_record);
  kernel_record.grid[0] = 65;
  log.on_kernel(kernel_record);
  kernel_record.name = "relu";
  log.on_kernel(kernel_record);
  log.on_kernel(kernel(1, 0));
  EXPECT_EQ(collect_all_kernels(log).classes.size(), 3u);
}

TEST(KernelLog, AKernelWithoutALaunchIsCountedAtTheRootScope) {
  KernelLog log;
  log.on_launch(1, 9, 1, 0);
  log.on_launch(1 + (1u << 18), 9, 1, 0);  // overwrites the first launch
  log.on_kernel(kernel(1, 0));
  EXPECT_EQ(log.counts().kernels_without_scope, 1u);
  EXPECT_EQ(collect_all_kernels(log).kernels.at(0).scope, 0u);
}

TEST(KernelLog, KernelsOfAGraphHaveTheScopeOfTheirCapture) {
  KernelLog log;
  log.on_graph_node(100, 7);
  log.on_graph_node_copied(100, 200);
  log.on_launch(5, 1, 0, 0);
  for (const std::uint64_t node : {std::uint64_t{200}, std::uint64_t{300}}) {  // one launch of a graph, many kernels
    KernelActivityRecord kernel_record = kernel(5, static_cast<std::int64_t>(node));
    kernel_record.graph_node = node;
    log.on_kernel(kernel_record);
  }
  const Activity activity = collect_all_kernels(log);
  EXPECT_EQ(activity.kernels.at(0).scope, 7u);
  EXPECT_EQ(activity.kernels.at(1).scope, 1u);  // its capture was not seen: scope of the graph's launch
}

TEST(KernelLog, RecordsAKernelThatArrivesAfterItsStepWasCollected) {
  KernelLog log;
  log.begin_step(1, 0, 0, true);
  log.on_launch(1, 3, 1, 0);
  log.begin_step(2, 1, kNanosecondsPerMillisecond, true);
  Activity early_activity{.end_ns = 2 * kNanosecondsPerMillisecond};
  log.collect_kernel_activity(early_activity, 2 * kNanosecondsPerMillisecond, false);
  ASSERT_EQ(early_activity.steps.size(), 1u);
  log.on_kernel(kernel(1, 10));
  const Activity late_activity = collect_all_kernels(log);
  ASSERT_EQ(late_activity.steps.size(), 1u);
  EXPECT_EQ(late_activity.steps[0].number, 1);
  EXPECT_EQ(late_activity.kernels.size(), 1u);
  EXPECT_EQ(late_activity.kernel_tallies.at(0).scope, 3u);
}

// Plays one step with `kernels` kernels; serial numbers count from 1.
void simulate_step(KernelLog& log, std::uint32_t serial, std::uint32_t kernels, std::int64_t step_ns) {
  const std::int64_t begin_ns = serial * step_ns;
  log.begin_step(serial, serial, begin_ns, true);
  for (std::uint32_t i = 0; i < kernels; ++i) {
    log.on_launch(i + 1, i / 3, serial, 0);
    log.on_kernel(kernel(i + 1, begin_ns + i * 2000));
  }
}

TEST(KernelLog, StepsWithEqualLaunchesHaveTheSameShape) {
  KernelLog log;
  simulate_step(log, 1, 10, kNanosecondsPerMillisecond);
  simulate_step(log, 2, 10, kNanosecondsPerMillisecond);
  simulate_step(log, 3, 11, kNanosecondsPerMillisecond);
  const Activity activity = collect_all_kernels(log);
  EXPECT_EQ(activity.steps.at(0).kernel_sequence_hash, activity.steps.at(1).kernel_sequence_hash);
  EXPECT_NE(activity.steps.at(0).kernel_sequence_hash, activity.steps.at(2).kernel_sequence_hash);
  EXPECT_NE(activity.steps.at(0).kernel_sequence_hash, 0u);
}

TEST(KernelLog, TheLoadIsThatOfATypicalStep) {
  KernelLog log;
  std::int64_t now_ns = 0;
  for (std::uint32_t step = 1; step <= 13; ++step) {
    log.begin_step(step, step, now_ns, true);
    log.on_launch(step, 1, step, 0);
    KernelActivityRecord busy = kernel(step, now_ns);
    busy.end_ns = now_ns + 9 * kNanosecondsPerMillisecond;
    log.on_kernel(busy);
    now_ns += step == 1 ? 3000 * kNanosecondsPerMillisecond
                        : 10 * kNanosecondsPerMillisecond;  // the first step loads libraries
  }
  collect_all_kernels(log);
  const KernelLog::StepLoadSummary load = log.recent_step_load();
  EXPECT_GE(load.traced_steps, 12u);
  EXPECT_NEAR(load.step_s, 0.010, 1e-6);
  EXPECT_NEAR(load.gpu_s, 0.009, 1e-6);
}

TEST(KernelLog, KernelsWithoutALaunchGetTheScopesOfTheLastTracedStep) {
  KernelLog log;
  log.begin_step(1, 0, 0, true);
  const std::uint32_t scopes[] = {5, 6, 5, 7};
  for (std::uint32_t i = 0; i < 4; ++i) {
    log.on_launch(i + 1, scopes[i], 1, 0);
    log.on_kernel(kernel(i + 1, i * 2000, i == 3 ? "relu" : "gemm"));
  }
  log.begin_step(2, 1, kNanosecondsPerMillisecond, true);
  Activity traced_step_activity;
  traced_step_activity.end_ns = kNanosecondsPerMillisecond;
  log.collect_kernel_activity(traced_step_activity, 2 * kNanosecondsPerMillisecond, true);
  for (std::uint32_t i = 0; i < 8; ++i) {
    log.on_kernel(kernel(100 + i, 2 * kNanosecondsPerMillisecond + i * 2000, i % 4 == 3 ? "relu" : "gemm"));
  }
  log.on_kernel(kernel(200, 3 * kNanosecondsPerMillisecond, "never seen before"));
  const Activity activity = collect_all_kernels(log);
  ASSERT_EQ(activity.kernels.size(), 9u);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(activity.kernels[i].scope, scopes[i % 4]) << i;
  EXPECT_EQ(activity.kernels[8].scope, 0u);
  EXPECT_EQ(log.counts().kernels_with_inferred_scope, 8u);
  EXPECT_EQ(log.counts().kernels_without_scope, 1u);
}

TEST(KernelLog, WaitsForOutstandingKernels) {
  KernelLog log;
  log.begin_step(1, 0, 0, true);
  log.on_launch(1, 3, 1, 0);
  log.begin_step(2, 1, kNanosecondsPerMillisecond, true);
  Activity early_activity{.end_ns = 2 * kNanosecondsPerMillisecond};
  log.collect_kernel_activity(early_activity, kNanosecondsPerMillisecond / 2, false);
  EXPECT_TRUE(early_activity.steps.empty());
  log.on_kernel(kernel(1, 10));
  Activity later_activity{.end_ns = 3 * kNanosecondsPerMillisecond};
  log.collect_kernel_activity(later_activity, 2 * kNanosecondsPerMillisecond, false);
  ASSERT_EQ(later_activity.steps.size(), 1u);
  EXPECT_EQ(later_activity.steps[0].kernels, 1u);
}

// The buffer of the backward thread is delivered later than that of the forward thread.
TEST(KernelLog, IntervalsOfTalliesDoNotOverlapWhenThreadsDeliverAtDifferentTimes) {
  KernelLog log;
  const auto deliver = [&](std::uint32_t first, std::uint32_t last, std::uint32_t parity) {
    for (std::uint32_t i = first; i < last; ++i) {
      if (i % 2 == parity) log.on_kernel(kernel(i + 1, i * 1000));
    }
  };
  const auto collect_tallies = [&](std::int64_t settled_until_ns) {
    Activity activity{.end_ns = kNanosecondsPerMillisecond};
    log.collect_kernel_activity(activity, settled_until_ns, true);
    return activity;
  };
  deliver(0, 600, 0);
  deliver(0, 200, 1);
  const Activity first = collect_tallies(200'000);
  deliver(200, 1000, 1);
  deliver(600, 1000, 0);
  const Activity second = collect_tallies(INT64_MAX);
  const auto count_kernels = [](const Activity& activity) {
    std::uint64_t count = 0;
    for (const KernelTally& tally : activity.kernel_tallies) count += tally.count;
    return count;
  };
  EXPECT_EQ(count_kernels(first), 200u);
  EXPECT_EQ(count_kernels(second), 800u);
  EXPECT_LE(first.end_ns, 201'000);
  EXPECT_EQ(second.begin_ns, 200'000);
}

TEST(KernelLog, ALongRunStoresTalliesAndOccasionalSteps) {
  KernelLog log;
  std::uint64_t has_kernel_records = 0;
  std::uint64_t steps = 0;
  std::uint64_t summed = 0;
  constexpr std::uint32_t kSteps = 25'000;
  constexpr std::uint32_t kKernels = 500;
  constexpr std::int64_t kStep_ns = 30 * kNanosecondsPerMillisecond;
  for (std::uint32_t serial = 1; serial <= kSteps; ++serial) {
    simulate_step(log, serial, kKernels, kStep_ns);
    if (serial % 30 != 0) continue;
    Activity activity{.end_ns = serial * kStep_ns};
    log.collect_kernel_activity(activity, activity.end_ns, true);
    steps += activity.steps.size();
    for (const StepRecord& step : activity.steps) has_kernel_records += step.has_kernel_records ? 1 : 0;
    for (const KernelTally& tally : activity.kernel_tallies) summed += tally.count;
  }
  EXPECT_GE(steps, kSteps - 30u);
  EXPECT_GE(summed, kSteps * std::uint64_t{kKernels} - 30 * kKernels);
  EXPECT_LT(has_kernel_records * kKernels, 10'000'000u);
  EXPECT_GT(has_kernel_records * kKernels, 8'000'000u);
}

TEST(KernelLog, AProgramWithoutStepsIsWrittenContinuously) {
  KernelLog log;
  log.on_launch(1, 4, 0, 0);
  log.on_kernel(kernel(1, 10));
  Activity activity{.end_ns = kNanosecondsPerMillisecond};
  log.collect_kernel_activity(activity, 0, true);
  EXPECT_EQ(activity.kernels.size(), 1u);
  EXPECT_TRUE(activity.steps.empty());
}

TEST(KernelLog, ChargesIdleTimeToTheScopeOfTheHostWhoeverReportsItFirst) {
  KernelLog log;
  log.set_tracing(0, WaitTracing::on, 1);
  log.on_launch(11, 1, 0, 1000);
  log.on_kernel({.name = "first", .correlation = 11, .start_ns = 3'000'000, .end_ns = 4'000'000});
  log.set_tracing(5'000'000, WaitTracing::on,
                  2);  // the next step begins; edges of the last one are still buffered per thread
  log.add_host_scope_changes({{.time_ns = 4'500'000, .scope = 3}});
  log.on_launch(12, 2, 0, 6'000'000);
  log.on_kernel({.name = "second", .correlation = 12, .start_ns = 6'000'000, .end_ns = 7'000'000});
  log.attribute_gpu_waits(8'000'000, 8'000'000);
  std::vector<Activity> waits;
  log.collect_gpu_waits(waits);
  ASSERT_EQ(waits.size(), 1u);
  std::map<std::uint32_t, std::int64_t> wait_ns_by_scope;
  for (const WaitTally& wait : waits[0].waits) wait_ns_by_scope[wait.scope] += wait.time_ns;
  // The host was in scope 1 for 4.5 ms, in which it launched a kernel of 1 ms, in scope 3 for 0.5 ms and in scope 2 for
  // 1 ms.
  EXPECT_EQ(wait_ns_by_scope[1], 1'000'000 + 1'400'000);  // before the first kernel, and before the second one
  EXPECT_EQ(wait_ns_by_scope[3], 200'000);
  EXPECT_EQ(wait_ns_by_scope[2], 400'000);
}

}  // namespace
}  // namespace joulemap::capture
