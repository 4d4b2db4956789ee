// SPDX-License-Identifier: Apache-2.0
//
// Tests that CUPTI is closed during untraced steps and works as before when tracing resumes.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "capture/cupti/cupti_session.h"
#include "fake_cupti/session_under_test.h"

namespace joulemap::capture::cupti {
namespace {

class DetachedSession : public SessionUnderTest {
 protected:
  explicit DetachedSession(std::uint32_t version = kCuda130) : SessionUnderTest(JOULEMAP_FAKE_CUPTI_LIBRARY, version) {}

  void start_and_detach() {
    start();
    session().allow_detach(true);
    fake.launch({.name = "first"});
    session().set_tracing(false);
    poll_for(2);
    fake.launch({.name = "unheard"});
  }
};

TEST_F(DetachedSession, DetachesInALaunchOnceTracingIsOff) {
  start();
  session().allow_detach(true);
  fake.launch({.name = "told"});
  session().set_tracing(false);
  poll_for(2);
  EXPECT_TRUE(fake.is_subscribed()) << "not by the thread that polls";
  fake.launch({});
  EXPECT_TRUE(session().is_detached());
  EXPECT_FALSE(fake.is_subscribed());
  ASSERT_EQ(received.kernels.size(), 1U);
  EXPECT_EQ(received.kernels[0].name, "told");
  EXPECT_TRUE(session().diagnostics().empty());
}

TEST_F(DetachedSession, CallsNothingOfCuptiWhileDetached) {
  start_and_detach();
  ASSERT_TRUE(session().is_detached());
  const std::uint64_t calls = fake.calls();
  poll_for(30);
  fake.launch({});
  EXPECT_EQ(fake.calls(), calls);
  EXPECT_EQ(session().delivered_until_ns(now_ns), now_ns) << "nothing is on its way";
}

TEST_F(DetachedSession, RecordsKernelsWithScopesWhenTracingResumes) {
  start_and_detach();
  for (std::uint32_t round = 0; round < 50; ++round) {
    session().set_tracing(true);
    EXPECT_FALSE(session().is_detached());
    current_scope = 100 + round;
    const std::uint32_t correlation = fake.launch({.name = "again"});
    poll_for(1);
    ASSERT_EQ(received.kernels.size(), 2U + round);
    EXPECT_EQ(received.launches.at(correlation).scope, 100 + round);
    session().set_tracing(false);
    poll_for(2);
    fake.launch({});
    ASSERT_TRUE(session().is_detached()) << round;
  }
  EXPECT_TRUE(session().diagnostics().empty());
}

TEST_F(DetachedSession, StaysAttachedUnlessDetachIsAllowed) {
  start();
  session().set_tracing(false);
  poll_for(10);
  fake.launch({});
  EXPECT_FALSE(session().is_detached());
}

TEST_F(DetachedSession, StaysAttachedOnceAGraphIsCaptured) {
  start();
  session().allow_detach(true);
  fake.capture_graph_node();
  session().set_tracing(false);
  poll_for(10);
  fake.launch({});
  EXPECT_FALSE(session().is_detached());
}

TEST_F(DetachedSession, AttachesForAGraphThatIsAboutToBeCaptured) {
  start_and_detach();
  session().allow_detach(false);
  EXPECT_FALSE(session().is_detached());
  current_scope = 9;
  EXPECT_EQ(received.nodes.count(fake.capture_graph_node()), 1U);
  fake.launch({});
  poll_for(1);
  EXPECT_EQ(received.kernels.size(), 1U) << "nobody listens all the same";
}

TEST_F(DetachedSession, CancelsDetachWhenTracingResumesBeforeTheNextLaunch) {
  start();
  session().allow_detach(true);
  session().set_tracing(false);
  poll_for(2);
  session().set_tracing(true);
  fake.launch({});
  EXPECT_FALSE(session().is_detached());
  poll_for(1);
  EXPECT_EQ(received.kernels.size(), 1U);
}

TEST_F(DetachedSession, WaitsForAKernelThatStillRuns) {
  start();
  session().allow_detach(true);
  fake.launch({.keeps_running = true});
  session().set_tracing(false);
  session().poll(monotonic_ns() + kNanosecondsPerSecond / 2);
  fake.launch({});
  EXPECT_FALSE(session().is_detached());
}

TEST_F(DetachedSession, StaysAttachedAfterAnotherProfilerUsedCupti) {
  start();
  session().allow_detach(true);
  session().set_other_profiler_running(true, now_ns);
  session().set_other_profiler_running(false, now_ns);
  session().set_tracing(false);
  poll_for(10);
  fake.launch({});
  EXPECT_FALSE(session().is_detached());
}

TEST_F(DetachedSession, YieldsCuptiWhileDetachedAndReattaches) {
  start_and_detach();
  session().set_other_profiler_running(true, now_ns);
  fake.attach_other_profiler(true);
  session().set_tracing(true);
  EXPECT_FALSE(fake.is_subscribed()) << "the other one has it";
  fake.detach_other_profiler();
  session().set_other_profiler_running(false, now_ns);
  fake.launch({.name = "after"});
  poll_for(1);
  ASSERT_EQ(received.kernels.size(), 2U);
  EXPECT_EQ(received.kernels[1].name, "after");
}

TEST_F(DetachedSession, FinishesWithoutCuptiCalls) {
  start_and_detach();
  const std::uint64_t calls = fake.calls();
  session().finish();
  EXPECT_EQ(fake.calls(), calls);
  EXPECT_TRUE(session().diagnostics().empty());
}

TEST_F(DetachedSession, DoesNotRetryAFailedDetach) {
  fake.set_function_result("cuptiFinalize", static_cast<int>(CuptiResult::unknown));
  start_and_detach();
  EXPECT_TRUE(session().diagnostics().contains("cupti_rest"));
  session().set_tracing(true);
  session().set_tracing(false);
  poll_for(5);
  fake.launch({});
  EXPECT_FALSE(session().is_detached());
}

TEST_F(DetachedSession, ThreadsMayLaunchDuringDetachAndAttach) {
  start();
  session().allow_detach(true);
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (std::uint32_t scope = 1; scope <= 3; ++scope) {
    threads.emplace_back([this, scope, &ends] {
      current_scope = scope;
      while (!ends.load()) fake.launch({.stream = scope});
    });
  }
  int is_detached = 0;
  for (int round = 0; round < 200; ++round) {
    session().set_tracing(false);
    poll_for(2);
    while (!session().is_detached() && round < 100) std::this_thread::yield();
    is_detached += session().is_detached() ? 1 : 0;
    session().set_tracing(true);
  }
  ends.store(true);
  for (std::thread& thread : threads) thread.join();
  poll_for(1);
  EXPECT_GE(is_detached, 100);
  for (const ReceivedEvents::KernelRecord& kernel : received.kernels) {
    const auto launch = received.launches.find(kernel.facts.correlation);
    if (launch == received.launches.end()) continue;
    ASSERT_EQ(launch->second.scope, kernel.facts.stream);
  }
  EXPECT_FALSE(session().diagnostics().contains("kernels_lost"));
}

class OlderCupti : public DetachedSession {
 protected:
  OlderCupti() : DetachedSession(23) {}  // CUDA 12.5
};

TEST_F(OlderCupti, OlderCuptiIsNeverDetached) {
  start_and_detach();
  EXPECT_FALSE(session().is_detached());
}

}  // namespace
}  // namespace joulemap::capture::cupti
