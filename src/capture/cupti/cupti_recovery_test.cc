// SPDX-License-Identifier: Apache-2.0
//
// Tests CuptiSession with other profilers in the process, and how it finishes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "capture/cupti/cupti_session.h"
#include "fake_cupti/session_under_test.h"

namespace joulemap::capture::cupti {
namespace {

using CuptiRecoveryTest = SessionUnderTest;

constexpr std::uint32_t kKernelRecordKind = static_cast<std::uint32_t>(RecordKind::concurrent_kernel);
constexpr int kOverflowingRecordCount = 3 * static_cast<int>(kMaxBufferBytes / kMinRecordBytes);

TEST_F(CuptiRecoveryTest, RecoversRecordsFromAProfilerThatReplacedTheClock) {
  start();
  fake.launch({});
  poll_for(1);
  fake.attach_other_profiler(true);
  fake.launch({.name = "lost"});
  poll_for(3);
  fake.launch({.name = "found"});
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 2U);
  EXPECT_EQ(received.kernels[1].name, "found");
  EXPECT_NE(find_diagnostic_message("kernels_lost").find("2.0 s are missing"), std::string::npos)
      << find_diagnostic_message("kernels_lost");
  ASSERT_EQ(received.loss_spans_ns.size(), 1U);
  EXPECT_EQ(received.loss_spans_ns[0].second - received.loss_spans_ns[0].first, 2'000'000'000);
}

TEST_F(CuptiRecoveryTest, DetectsLossByLaunchCountWithoutATimestampCallback) {
  start();
  poll_for(1);
  fake.attach_other_profiler(false);
  fake.launch({});
  poll_for(5);
  EXPECT_FALSE(session().diagnostics().contains("kernels_lost")) << "one kernel may be held back";
  for (int i = 0; i < kOverflowingRecordCount; ++i) fake.launch({});
  poll_for(3);
  EXPECT_TRUE(session().diagnostics().contains("kernels_lost"));
  fake.launch({.name = "found"});
  poll_for(1);
  ASSERT_FALSE(received.kernels.empty());
  EXPECT_EQ(received.kernels.back().name, "found");
}

TEST_F(CuptiRecoveryTest, SurvivesAProfilerThatFinalizesCupti) {
  start();
  poll_for(1);
  fake.finalize();
  poll_for(3);
  current_scope = 4;
  const std::uint32_t correlation = fake.launch({});
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 1U);
  EXPECT_EQ(received.launches.at(correlation).scope, 4U) << "it is subscribed again";
}

TEST_F(CuptiRecoveryTest, YieldsCuptiToAnAnnouncedProfiler) {
  start();
  fake.launch({.name = "before"});
  session().set_other_profiler_running(true, now_ns);
  EXPECT_EQ(received.kernels.size(), 1U) << "what CUPTI had is fetched first";
  EXPECT_FALSE(fake.is_subscribed());
  EXPECT_FALSE(fake.is_kind_enabled(kKernelRecordKind));
  EXPECT_FALSE(session().is_tracing());
  fake.attach_other_profiler(true);
  const std::uint64_t calls = fake.calls();
  poll_for(10);
  EXPECT_EQ(fake.calls(), calls) << "nobody interferes";
}

TEST_F(CuptiRecoveryTest, ResumesAfterAnAnnouncedProfilerAndReportsTheGap) {
  start();
  session().set_other_profiler_running(true, now_ns);
  fake.attach_other_profiler(true);
  fake.launch({.name = "profiled"});
  fake.detach_other_profiler();
  poll_for(4);
  session().set_other_profiler_running(false, now_ns);
  current_scope = 9;
  const std::uint32_t correlation = fake.launch({.name = "after"});
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 1U);
  EXPECT_EQ(received.kernels[0].name, "after");
  EXPECT_EQ(received.launches.at(correlation).scope, 9U);
  EXPECT_NE(find_diagnostic_message("kernels_lost").find("4.0 s"), std::string::npos)
      << find_diagnostic_message("kernels_lost");
}

TEST_F(CuptiRecoveryTest, ResumesWithoutScopesWhenTheProfilerStaysSubscribed) {
  start();
  session().set_other_profiler_running(true, now_ns);
  fake.set_other_subscriber(true);
  session().set_other_profiler_running(false, now_ns);
  fake.launch({});
  poll_for(1);
  EXPECT_EQ(received.kernels.size(), 1U);
  EXPECT_TRUE(session().diagnostics().contains("kernels_without_places"));
}

TEST_F(CuptiRecoveryTest, AppliesSetTracingOfAProfilingSpanAfterwards) {
  start();
  session().set_other_profiler_running(true, now_ns);
  session().set_tracing(false);
  session().set_other_profiler_running(false, now_ns);
  EXPECT_FALSE(session().is_tracing());
  EXPECT_FALSE(fake.is_kind_enabled(kKernelRecordKind));
  session().set_tracing(true);
  fake.launch({});
  poll_for(1);
  EXPECT_EQ(received.kernels.size(), 1U);
}

TEST_F(CuptiRecoveryTest, IgnoresBuffersOfAnotherProfiler) {
  start();
  fake.return_foreign_buffer();
  EXPECT_TRUE(received.kernels.empty());
  EXPECT_TRUE(session().diagnostics().contains("kernels_foreign_buffer"));
}

TEST_F(CuptiRecoveryTest, DropsAndCountsRecordsOfAForeignClock) {
  start();
  fake.set_times_damaged(true);
  fake.launch({});
  fake.set_times_damaged(false);
  fake.launch({.name = "good"});
  fake.add_unknown_record();
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 1U);
  EXPECT_EQ(received.kernels[0].name, "good");
  EXPECT_EQ(session().record_counts().foreign_clock_records, 1U);
  EXPECT_TRUE(session().diagnostics().contains("kernels_foreign_clock"));
  EXPECT_EQ(session().record_counts().unknown_kinds, 1U);
}

TEST_F(CuptiRecoveryTest, FinishFlushesIncompleteRecordsAndUnsubscribes) {
  start();
  fake.launch({.name = "done"});
  fake.launch({.name = "runs", .keeps_running = true});
  session().finish();
  ASSERT_EQ(received.kernels.size(), 1U);
  EXPECT_EQ(session().record_counts().incomplete_records, 1U);
  EXPECT_FALSE(fake.is_subscribed());
  EXPECT_FALSE(fake.is_kind_enabled(kKernelRecordKind));
  const std::uint64_t calls = fake.calls();
  session().finish();
  poll_for(1);
  session().set_tracing(false);
  session().set_other_profiler_running(true, now_ns);
  EXPECT_EQ(fake.calls(), calls) << "nothing is done twice";
}

TEST_F(CuptiRecoveryTest, ThreadsMayLaunchWhileItFinishes) {
  start();
  std::atomic<bool> is_stopping{false};
  std::atomic<int> launched{0};
  std::thread program([&] {
    while (!is_stopping.load()) {
      fake.launch({});
      launched.fetch_add(1);
    }
  });
  while (launched.load() < 100) std::this_thread::yield();
  session().finish();
  const std::size_t received_count = received.kernels.size();
  const int target_launch_count = launched.load() + 100;
  while (launched.load() < target_launch_count) std::this_thread::yield();
  is_stopping.store(true);
  program.join();
  EXPECT_GE(received_count, 100U);
  EXPECT_EQ(received.kernels.size(), received_count) << "what comes later is not for this recording";
}

TEST_F(CuptiRecoveryTest, IgnoresBuffersAfterFinish) {
  start();
  fake.set_records_held(true);
  fake.launch({});
  session().finish();
  fake.release_records(false);
  fake.finalize();  // delivers all its records
  EXPECT_TRUE(received.kernels.empty());
}

TEST_F(CuptiRecoveryTest, ReportsADriverThatIsGoneAtTheEnd) {
  start();
  fake.set_function_result("cuptiActivityFlushAll", static_cast<int>(CuptiResult::not_initialized));
  fake.set_function_result("cuptiActivityDisable", static_cast<int>(CuptiResult::not_initialized));
  session().finish();
  EXPECT_TRUE(session().diagnostics().contains("cupti_flush"));
}

TEST_F(CuptiRecoveryTest, FinishGivesUpOnALibraryThatHangs) {
  start();
  fake.set_flush_hang(true);
  session().finish();
  EXPECT_TRUE(session().diagnostics().contains("cupti_hangs"));
  fake.set_flush_hang(false);
}

TEST_F(CuptiRecoveryTest, AForkedChildCallsNothing) {
  start();
  fake.launch({});
  const pid_t child = ::fork();
  if (child == 0) {
    session().abandon_in_child();
    const std::uint64_t calls = fake.calls();
    poll_for(3);
    session().set_tracing(false);
    session().set_other_profiler_running(true, now_ns);
    session().finish();
    ::_exit(fake.calls() == calls && received.kernels.empty() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  poll_for(1);
  EXPECT_EQ(received.kernels.size(), 1U) << "the parent goes on";
}

}  // namespace
}  // namespace joulemap::capture::cupti
