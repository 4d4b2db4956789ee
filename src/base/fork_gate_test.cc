// SPDX-License-Identifier: Apache-2.0
#include "base/fork_gate.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <thread>

namespace joulemap {
namespace {

constexpr std::int64_t kLongTimeout_ns = 60 * kNanosecondsPerSecond;
constexpr std::int64_t kShortTimeout_ns = kNanosecondsPerMillisecond;

// A thread that stays inside the gate from construction until leave().
class ThreadInsideGate {
 public:
  explicit ThreadInsideGate(ForkGate& gate)
      : thread_([this, &gate] {
          const ForkGate::ScopedGateEntry inside(gate);
          inside_promise_.set_value();
          leave_promise_.get_future().wait();
        }) {
    inside_promise_.get_future().wait();
  }
  ~ThreadInsideGate() { leave(); }
  void leave() {
    if (!thread_.joinable()) return;
    leave_promise_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> inside_promise_;
  std::promise<void> leave_promise_;
  std::thread thread_;
};

TEST(ForkGate, AForkWaitsForThreadsInside) {
  ForkGate gate;
  ThreadInsideGate thread_inside(gate);
  std::promise<void> begins;
  std::thread forking_thread([&] {
    begins.set_value();
    gate.before_fork(kLongTimeout_ns);
    gate.after_fork_in_child();
  });
  begins.get_future().wait();
  thread_inside.leave();
  forking_thread.join();
  EXPECT_FALSE(gate.may_hold_inherited_locks());
}

TEST(ForkGate, AChildDetectsThatAThreadWasInside) {
  ForkGate gate;
  ThreadInsideGate thread_inside(gate);
  gate.before_fork(kShortTimeout_ns);
  gate.after_fork_in_child();
  EXPECT_TRUE(gate.may_hold_inherited_locks());
  gate.before_fork(kLongTimeout_ns);  // returns at once: no thread of the child is inside
  gate.after_fork_in_parent();
}

TEST(ForkGate, WaitsOnceForAThreadThatHangsInside) {
  ForkGate gate;
  ThreadInsideGate thread_inside(gate);
  gate.before_fork(kShortTimeout_ns);
  gate.after_fork_in_parent();
  gate.before_fork(kLongTimeout_ns);
  gate.after_fork_in_parent();
  EXPECT_FALSE(gate.may_hold_inherited_locks()) << "the parent goes on using it";
}

TEST(ForkGate, AThreadThatArrivesDuringAForkEntersAfterIt) {
  ForkGate gate;
  std::atomic<bool> has_forked{false};
  gate.before_fork(kLongTimeout_ns);
  std::thread late_thread([&] {
    const ForkGate::ScopedGateEntry inside(gate);
    EXPECT_TRUE(has_forked.load());
  });
  has_forked.store(true);
  gate.after_fork_in_parent();
  late_thread.join();
}

TEST(ForkGate, ACallThatBeganBeforeAForkDoesNotEndInTheChild) {
  ForkGate gate;
  {
    const ForkGate::ScopedGateEntry inside(gate);
    increment_fork_generation();
    gate.after_fork_in_child();
  }
  gate.before_fork(kLongTimeout_ns);
  gate.after_fork_in_parent();
}

}  // namespace
}  // namespace joulemap
