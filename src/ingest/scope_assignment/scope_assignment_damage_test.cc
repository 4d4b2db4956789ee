// SPDX-License-Identifier: Apache-2.0
#include "ingest/scope_assignment/scope_assignment.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "support/traced_program.h"

namespace joulemap::ingest {
namespace {

constexpr auto kAnnotationEvent = EventKind::annotation;
constexpr auto kFunctionEvent = EventKind::function;

TEST(ScopeAssignment, ClipsAndCountsOverlappingSiblings) {
  Program program;
  program.op("first", 0, 100);
  program.op("second", 90, 100);  // mostly after the first
  program.op("outer", 300, 100);
  program.op("inner", 310, 95);  // mostly within
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.wall_time_us("inference/forward/first"), 90);
  EXPECT_EQ(outcome.wall_time_us("inference/forward/second"), 100);
  EXPECT_EQ(outcome.wall_time_us("inference/forward/outer"), 100);
  ASSERT_TRUE(outcome.scoped_trace.diagnostics.contains("events_cut"));
  EXPECT_EQ(outcome.scoped_trace.diagnostics.list().back().count, 2U);
}

TEST(ScopeAssignment, AnAnnotationOverlapsTheFunctionsThatBeginAndEndIt) {
  Program program;
  program.add(kFunctionEvent, "enter", 0, 20);
  program.add(kAnnotationEvent, "mine", 10, 100);
  program.add(kFunctionEvent, "exit", 100, 20);
  program.add(kFunctionEvent, "within exit", 104, 12);
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_FALSE(outcome.scoped_trace.diagnostics.contains("events_cut"));
  EXPECT_EQ(outcome.count("mine"), 1U);
}

TEST(ScopeAssignment, ARepeatedCorrelationBelongsToTheNearestEarlierCall) {
  Program program;
  program.op("one", 0, 10);
  program.launch(5, 3);
  program.op("two", 100, 10);
  program.launch(105, 3);
  program.kernel("k", 20, 30, 3);
  program.kernel("k", 120, 50, 3);
  program.kernel("k", 121, 60, 3);  // kernels of one stream may overlap
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.kernel_us.at("inference/forward/one"), 30);
  EXPECT_EQ(outcome.kernel_us.at("inference/forward/two"), 110);
}

TEST(ScopeAssignment, AKernelWithoutACallBelongsToTheOperationOfItsExternalId) {
  Program program;
  TraceEvent op = program.event(EventKind::op, "aten::mm", 0, 10);
  op.external_id = 77;
  program.builder.add_event(op);
  program.kernel("k", 20, 30, 0, 77);
  program.kernel("lost", 60, 10, 12345);
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.kernel_us.at("inference/forward/aten::mm"), 30);
  EXPECT_EQ(outcome.scoped_trace.kernels_without_scope, 1U);
  EXPECT_EQ(outcome.scoped_trace.kernel_time_without_scope_ns, 10'000);
  EXPECT_EQ(outcome.kernel_us.at(""), 10);  // kept although unattributed
  EXPECT_TRUE(outcome.scoped_trace.diagnostics.contains("kernels_without_place"));
}

TEST(ScopeAssignment, LongEventsHaveTimeInEveryInterval) {
  Program program;
  program.op("long", 0, 1'000'000);
  program.launch(10, 1);
  program.kernel("k", 20, 2'000'000, 1);
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.wall_time_us("inference/forward/long"), 1'000'000);
  EXPECT_EQ(outcome.count("inference/forward/long"), 1U);
  EXPECT_EQ(outcome.kernel_us.at("inference/forward/long"), 2'000'000);
  EXPECT_EQ(outcome.kernels.size(), 1U);
}

TEST(ScopeAssignment, AcceptsAnEmptyTrace) {
  Program program;
  EXPECT_EQ(assign_program_scopes(program).scoped_trace.end_ns, 0);
}

// For arbitrary events, no time is lost, invented or negative.
TEST(ScopeAssignment, TimesSumToTheTotalForAnyEvents) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Program program;
    const auto random_below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
    constexpr std::array kNames = {"aten::mm",
                                   "nn.Module: A_0",
                                   "nn.Module: BLoss_1",
                                   "ProfilerStep#1",
                                   "nccl:all_reduce",
                                   "Optimizer.step#SGD.step",
                                   "region",
                                   "torch::autograd::AccumulateGrad",
                                   "autograd::engine::evaluate_function: X"};
    std::int64_t kernel_ns = 0;
    for (int i = 0; i < 300; ++i) {
      TraceEvent event = program.event(static_cast<EventKind>(random_below(5)), kNames[random_below(kNames.size())],
                                       random_below(100'000), random_below(random_below(20) == 0 ? 1'000'000 : 3'000),
                                       1 + random_below(3));
      event.detail_index = event.kind == EventKind::op ? random_below(20) : 0;
      event.correlation = event.kind == EventKind::api ? random_below(20) : 0;
      event.is_backward = random_below(4) == 0;
      program.builder.add_event(event);
      const std::int64_t length = random_below(50'000);
      program.kernel("k", random_below(100'000), length, random_below(20), random_below(4));
      kernel_ns += length * 1000;
    }
    const AssignmentOutcome outcome = assign_program_scopes(program);
    EXPECT_EQ(outcome.tallied_kernel_ns, kernel_ns);
    std::int64_t thread_time_ns = 0;
    for (const auto& [path, tally] : outcome.threads) {
      EXPECT_GE(tally.wall_ns, 0) << path;
      thread_time_ns += tally.wall_ns;
    }
    EXPECT_EQ(thread_time_ns, outcome.scoped_trace.thread_time_in_scopes_ns);
    EXPECT_LE(thread_time_ns, 3 * (outcome.scoped_trace.end_ns - outcome.scoped_trace.begin_ns));
  }
}

}  // namespace
}  // namespace joulemap::ingest
