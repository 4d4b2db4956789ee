// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/cupti_session.h"

#include <gtest/gtest.h>

#include <thread>

#include "fake_cupti/session_under_test.h"

namespace joulemap::capture::cupti {
namespace {

using fake_cupti::Work;
using CuptiSessionTest = SessionUnderTest;

constexpr std::uint32_t kKernelRecordKind = static_cast<std::uint32_t>(RecordKind::concurrent_kernel);

TEST_F(CuptiSessionTest, LinksAKernelToItsScopeAndStep) {
  start();
  current_scope = 17;
  current_step = 3;
  const std::uint32_t correlation = fake.launch({.name = "gemm", .grid = {4, 2, 1}, .duration_ns = 5000});
  current_scope = 18;
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 1U);
  const KernelActivityRecord& kernel = received.kernels[0].facts;
  EXPECT_EQ(received.kernels[0].name, "gemm");
  EXPECT_EQ(kernel.correlation, correlation);
  EXPECT_EQ(kernel.grid[1], 2U);
  EXPECT_EQ(kernel.end_ns - kernel.start_ns, 5000);
  EXPECT_EQ(received.launches.at(correlation).scope, 17U);
  EXPECT_EQ(received.launches.at(correlation).step, 3U);
  EXPECT_TRUE(session().diagnostics().empty());
}

TEST_F(CuptiSessionTest, CopiesMemsetsAndPeerCopiesHaveScopes) {
  start();
  current_scope = 5;
  const std::uint32_t copy_correlation = fake.launch({.work = Work::copy, .bytes = 1024});
  const std::uint32_t fill_correlation = fake.launch({.work = Work::fill, .bytes = 64});
  const std::uint32_t peer_correlation = fake.launch({.work = Work::peer_copy, .bytes = 32, .copy_kind = 10});
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 3U);
  for (const std::uint32_t correlation : {copy_correlation, fill_correlation, peer_correlation})
    EXPECT_EQ(received.launches.at(correlation).scope, 5U);
  EXPECT_EQ(received.kernels[0].name, "HtoD");
  EXPECT_EQ(received.kernels[2].facts.correlation, peer_correlation);
}

TEST_F(CuptiSessionTest, TimesAreOfTheHostClock) {
  start();
  const std::int64_t before_ns = monotonic_ns();
  fake.launch({.duration_ns = 10});
  const std::int64_t after_ns = monotonic_ns();
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 1U);
  EXPECT_GE(received.kernels[0].facts.end_ns, before_ns);
  EXPECT_LE(received.kernels[0].facts.end_ns, after_ns);
}

TEST_F(CuptiSessionTest, DefinesADeviceBeforeItsFirstKernel) {
  start();
  fake.launch({.device = 1});
  fake.launch({.device = 1});
  fake.launch({.device = 0});
  poll_for(1);
  ASSERT_EQ(received.devices.size(), 2U);
  EXPECT_EQ(received.devices[0].first, 1U);
  EXPECT_EQ(received.devices[0].second, "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
}

TEST_F(CuptiSessionTest, ThreadsLaunchFromTheirOwnScopes) {
  start();
  constexpr std::uint32_t kThreads = 4;
  constexpr int kLaunchesPerThread = 3000;  // fills several buffers
  std::vector<std::thread> threads;
  for (std::uint32_t scope = 1; scope <= kThreads; ++scope) {
    threads.emplace_back([this, scope] {
      current_scope = scope;
      for (int i = 0; i < kLaunchesPerThread; ++i) fake.launch({.stream = scope});
    });
  }
  for (std::thread& thread : threads) thread.join();
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), kThreads * kLaunchesPerThread);
  for (const ReceivedEvents::KernelRecord& kernel : received.kernels) {
    ASSERT_EQ(received.launches.at(kernel.facts.correlation).scope, kernel.facts.stream);
  }
}

TEST_F(CuptiSessionTest, KernelsOfAGraphShareACorrelationAndHaveNodes) {
  start();
  current_scope = 30;
  const std::uint64_t node = fake.capture_graph_node();
  const std::uint64_t copy = fake.clone_graph_node(node);
  EXPECT_EQ(received.nodes.at(node), 30U);
  EXPECT_EQ(received.copies.at(copy), node);
  current_scope = 31;
  for (int replay = 0; replay < 2; ++replay) {
    const std::uint32_t graph = fake.launch_graph();
    fake.launch({.name = "a", .graph_node = copy, .correlation = graph});
    fake.launch({.name = "b", .graph_node = copy + 1, .correlation = graph});
    EXPECT_EQ(received.launches.at(graph).scope, 31U);
  }
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 4U);
  EXPECT_EQ(received.kernels[0].facts.correlation, received.kernels[1].facts.correlation);
  EXPECT_EQ(received.kernels[2].facts.graph_node, copy);
  EXPECT_EQ(session().launch_count(), 2U);
}

TEST_F(CuptiSessionTest, AGraphCapturedWhileTracingIsOffHasScopes) {
  start();
  session().set_tracing(false);
  current_scope = 8;
  const std::uint64_t node = fake.capture_graph_node();
  EXPECT_EQ(received.nodes.at(node), 8U);
}

TEST_F(CuptiSessionTest, AcceptsLateAndOutOfOrderRecords) {
  start();
  fake.set_records_held(true);
  for (int i = 0; i < 5; ++i) fake.launch({});
  poll_for(1);
  EXPECT_TRUE(received.kernels.empty());
  fake.release_records(true);
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 5U);
  EXPECT_GT(received.kernels[0].facts.correlation, received.kernels[4].facts.correlation);
  EXPECT_GE(received.kernels[0].facts.start_ns, received.kernels[4].facts.start_ns);
}

TEST_F(CuptiSessionTest, WaitsForARunningKernel) {
  start();
  fake.launch({.name = "long", .keeps_running = true});
  poll_for(20);
  EXPECT_TRUE(received.kernels.empty());
  EXPECT_FALSE(session().diagnostics().contains("kernels_lost"));
  fake.end_running_records();
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 1U);
}

TEST_F(CuptiSessionTest, RecordsAndCountsNothingWhileTracingIsOff) {
  start();
  fake.launch({});
  session().set_tracing(false);
  EXPECT_FALSE(session().is_tracing());
  EXPECT_FALSE(fake.is_kind_enabled(kKernelRecordKind));
  EXPECT_FALSE(fake.is_callback_enabled("cuLaunchKernel"));
  const std::uint32_t untraced_correlation = fake.launch({});
  fake.launch({.work = Work::copy});
  session().set_tracing(true);
  fake.launch({});
  poll_for(1);
  EXPECT_EQ(received.kernels.size(), 2U);
  EXPECT_EQ(received.launches.count(untraced_correlation), 0U);
  EXPECT_EQ(session().launch_count(), 2U);
}

TEST_F(CuptiSessionTest, AGraphKernelThatRunsWhenTracingEndsIsMissingAndNotOverlong) {
  start();
  const std::uint64_t node = fake.capture_graph_node();
  const std::uint32_t graph = fake.launch_graph();
  fake.launch({.name = "before", .graph_node = node, .correlation = graph});
  fake.launch({.name = "on the edge", .graph_node = node, .correlation = graph, .keeps_running = true});
  session().set_tracing(false);
  fake.end_running_records();
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 1U);
  EXPECT_EQ(received.kernels[0].name, "before");
  EXPECT_TRUE(session().diagnostics().contains("kernels_incomplete"));
}

TEST_F(CuptiSessionTest, AnotherSubscriberCostsOnlyTheScopes) {
  fake.set_other_subscriber(true);
  start();
  fake.launch({});
  poll_for(1);
  EXPECT_EQ(received.kernels.size(), 1U);
  EXPECT_TRUE(received.launches.empty());
  EXPECT_TRUE(session().diagnostics().contains("kernels_without_places"));
}

TEST_F(CuptiSessionTest, ADriverThatForbidsRecordsIsAnErrorWithARemedy) {
  fake.set_function_result("cuptiActivityEnable", static_cast<int>(CuptiResult::insufficient_privileges));
  const Status start_status = session().start();
  ASSERT_FALSE(start_status.has_value());
  EXPECT_EQ(start_status.error().code, ErrorCode::permission);
  EXPECT_FALSE(start_status.error().remedy.empty());
  EXPECT_FALSE(fake.is_subscribed()) << "others may have it";
  fake.launch({});
  EXPECT_TRUE(received.launches.empty());
}

TEST_F(CuptiSessionTest, AllowsOneSessionPerProcess) {
  start();
  Result<CuptiApi> api = open_fake_cupti(JOULEMAP_FAKE_CUPTI_LIBRARY);
  CuptiSession second_session(*std::move(api), received, kLaunchContext);
  EXPECT_FALSE(second_session.start().has_value());
}

TEST_F(CuptiSessionTest, AllowsANewSessionAfterFinish) {
  start();
  session().finish();
  ReceivedEvents received_by_second;
  {
    Result<CuptiApi> api = open_fake_cupti(JOULEMAP_FAKE_CUPTI_LIBRARY);
    CuptiSession second_session(*std::move(api), received_by_second, kLaunchContext);
    ASSERT_TRUE(second_session.start().has_value());
    fake.launch({.name = "gemm"});
    second_session.finish();
  }
  EXPECT_TRUE(received.kernels.empty());
  ASSERT_EQ(received_by_second.kernels.size(), 1U);
  EXPECT_EQ(received_by_second.kernels[0].name, "gemm");
}

TEST_F(CuptiSessionTest, FeedsTheKernelLog) {
  KernelLog log;
  KernelLogSink sink(log);
  Result<CuptiApi> api = open_fake_cupti(JOULEMAP_FAKE_CUPTI_LIBRARY);
  CuptiSession kernel_log_session(*std::move(api), sink, kLaunchContext, kFinishTimeout);
  ASSERT_TRUE(kernel_log_session.start().has_value());
  current_step = 1;
  log.begin_step(1, 0, monotonic_ns(), true);
  current_scope = 6;
  const std::uint64_t node = fake.clone_graph_node(fake.capture_graph_node());
  current_scope = 7;
  fake.launch({.name = "gemm", .device = 2});
  fake.launch({.name = "replayed", .graph_node = node, .correlation = fake.launch_graph()});
  kernel_log_session.finish();
  Activity activity{.end_ns = monotonic_ns()};
  log.collect_kernel_activity(activity, INT64_MAX, true);
  ASSERT_EQ(activity.kernels.size(), 2U);
  EXPECT_EQ(activity.kernels[0].scope, 7U);
  EXPECT_EQ(activity.kernels[1].scope, 6U) << "of the node, not of the graph's launch";
  EXPECT_EQ(activity.steps.at(0).kernels, 2U);
  EXPECT_EQ(activity.queues.at(0).device, "GPU-20212223-2425-2627-2829-2a2b2c2d2e2f");
  EXPECT_EQ(log.counts().kernels_without_scope, 0U);
}

// Runs where the real library is installed, with or without a GPU.
TEST_F(CuptiSessionTest, StartsWithTheRealLibraryOrReportsWhyNot) {
  Result<CuptiApi> api = CuptiApi::open(CuptiSearchInputs{});
  if (!api) GTEST_SKIP() << api.error().message;
  CuptiSession real_session(*std::move(api), received, kLaunchContext, kFinishTimeout);
  const Status start_status = real_session.start();
  if (!start_status) {
    EXPECT_NE(start_status.error().message.find("CUPTI error"), std::string::npos) << start_status.error().message;
  }
  real_session.poll(monotonic_ns());
  real_session.finish();
  EXPECT_FALSE(real_session.is_tracing());
}

// The fake library behaves like CUPTI of CUDA 11.0: no custom clock, no ids of graph nodes, shorter records.
class OldCuptiSessionTest : public SessionUnderTest {
 protected:
  OldCuptiSessionTest() : SessionUnderTest(JOULEMAP_OLD_FAKE_CUPTI_LIBRARY, 13) {}
};

TEST_F(OldCuptiSessionTest, MapsTimesOfTheGpuClock) {
  start();
  const std::int64_t before_ns = monotonic_ns();
  fake.launch({.name = "old", .duration_ns = 10});
  const std::int64_t after_ns = monotonic_ns();
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 1U);
  EXPECT_EQ(received.kernels[0].name, "old");
  EXPECT_GE(received.kernels[0].facts.end_ns, before_ns - kMinClockJump_ns);
  EXPECT_LE(received.kernels[0].facts.end_ns, after_ns + kMinClockJump_ns);
}

TEST_F(OldCuptiSessionTest, AJumpOfItsClockIsFollowed) {
  start();
  fake.launch({.name = "before"});
  poll_for(1);
  fake.jump_clock(3600 * kNanosecondsPerSecond);
  poll_for(1);  // detects the jump
  const std::int64_t before_ns = monotonic_ns();
  fake.launch({.name = "after"});
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 2U);
  EXPECT_GE(received.kernels[1].facts.end_ns, before_ns - kMinClockJump_ns);
  EXPECT_LE(received.kernels[1].facts.end_ns, monotonic_ns() + kMinClockJump_ns);
}

TEST_F(OldCuptiSessionTest, OldCuptiDoesNotTraceGraphs) {
  start();
  fake.capture_graph_node();
  EXPECT_TRUE(received.nodes.empty());
}

}  // namespace
}  // namespace joulemap::capture::cupti
