// SPDX-License-Identifier: Apache-2.0
#include "capture/capture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

namespace joulemap::capture {
namespace {

struct WrittenRecords {
  std::vector<Mark> marks;
  std::map<std::uint32_t, Scope> scopes;
  std::map<std::uint32_t, ScopeTally> tallies;
  std::vector<StepRecord> steps;
  Diagnostics diagnostics;
};

class TestSink final : public CaptureSink {
 public:
  explicit TestSink(WrittenRecords& written) : written_records_(written) {}
  void add(Mark mark) override { written_records_.marks.push_back(std::move(mark)); }
  void add(Metric) override {}
  void add(EnvironmentFact) override {}
  void add(EngineSteps) override {}
  void add(Activity activity) override {
    for (Scope& scope : activity.scopes) written_records_.scopes[scope.id] = std::move(scope);
    for (const ScopeTally& tally : activity.scope_tallies) {
      ScopeTally& sum = written_records_.tallies[tally.scope];
      sum.count += tally.count;
      sum.wall_ns += tally.wall_ns;
      sum.cpu_ns += tally.cpu_ns;
      sum.helper_threads_cpu_ns += tally.helper_threads_cpu_ns;
    }
    written_records_.steps.insert(written_records_.steps.end(), activity.steps.begin(), activity.steps.end());
  }
  Status flush() override { return Done{}; }
  Status finish(Diagnostics diagnostics) override {
    written_records_.diagnostics = std::move(diagnostics);
    return Done{};
  }

 private:
  WrittenRecords& written_records_;
};

void burn_cpu_time(std::int64_t cpu_ns) {
  timespec cpu_time{};
  const auto cpu = [&] {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_time);
    return cpu_time.tv_sec * INT64_C(1'000'000'000) + cpu_time.tv_nsec;
  };
  const std::int64_t until_ns = cpu() + cpu_ns;
  while (cpu() < until_ns) {
  }
}

TEST(Capture, EveryProbingIsMarkedAndBelongsToNoStep) {
  WrittenRecords written;
  Capture capture(std::make_unique<TestSink>(written));
  capture.step({});
  const std::uint32_t serial = capture.step_serial();
  for (int time = 0; time < 2; ++time) {
    capture.set_probing(true);
    capture.set_probing(true);
    EXPECT_EQ(capture.step_serial(), 0u);
    capture.set_probing(false);
    capture.set_probing(false);
    EXPECT_EQ(capture.step_serial(), serial);
  }
  capture.step({});
  EXPECT_EQ(capture.step_serial(), serial + 1);
  capture.finish();
  std::map<std::uint64_t, int> edges;  // by id of the region
  for (const Mark& mark : written.marks) {
    if (mark.name == kProbeRegionName) edges[mark.id] += mark.kind == MarkKind::region_begin ? 1 : 10;
  }
  ASSERT_EQ(edges.size(), 2u);
  for (const auto& [id, edge_code_sum] : edges) EXPECT_EQ(edge_code_sum, 11);
}

TEST(Capture, ReportsTheCpuTimeOfEveryScope) {
  WrittenRecords written;
  Capture capture(std::make_unique<TestSink>(written));
  const std::uint32_t forward = capture.find_or_add_child_scope(0, ScopeKind::phase, "forward");
  const std::uint32_t layer = capture.find_or_add_child_scope(forward, ScopeKind::module, "layer1");
  capture.enter(forward);
  burn_cpu_time(2'000'000);
  capture.enter(layer);
  burn_cpu_time(6'000'000);
  capture.leave();
  capture.leave();
  capture.finish();
  EXPECT_GE(written.tallies[forward].cpu_ns, 2'000'000);
  EXPECT_GE(written.tallies[layer].cpu_ns, 6'000'000);
  EXPECT_GE(written.tallies[layer].wall_ns, 6'000'000);
  EXPECT_EQ(written.scopes[layer].name, "layer1");
  EXPECT_EQ(written.scopes[layer].parent, forward);
}

TEST(Capture, CpuTimeOfUntrackedThreadsBelongsToTheLeadingScope) {
  WrittenRecords written;
  Capture capture(std::make_unique<TestSink>(written));
  const std::uint32_t scope = capture.find_or_add_child_scope(0, ScopeKind::module, "conv");
  capture.enter(scope);
  std::thread worker([] { burn_cpu_time(20'000'000); });  // like an OpenMP worker
  worker.join();
  capture.leave();
  capture.finish();
  EXPECT_GE(written.tallies[scope].helper_threads_cpu_ns, 19'000'000);
  EXPECT_LT(written.tallies[scope].cpu_ns, 15'000'000);
}

TEST(Capture, CpuTimeBeforeTheFirstScopeBelongsToNone) {
  constexpr int kCaptures = 10;
  constexpr std::int64_t kCpuTimeBefore_ns = 8'000'000;  // less than the time between two ticks, which discard it
  std::int64_t helper_threads_cpu_ns = 0;
  for (int i = 0; i < kCaptures; ++i) {
    WrittenRecords written;
    Capture capture(std::make_unique<TestSink>(written));
    const std::uint32_t scope = capture.find_or_add_child_scope(0, ScopeKind::module, "conv");
    burn_cpu_time(kCpuTimeBefore_ns);
    capture.enter(scope);
    burn_cpu_time(200'000);
    capture.leave();
    capture.finish();
    helper_threads_cpu_ns += written.tallies[scope].helper_threads_cpu_ns;
  }
  EXPECT_LT(helper_threads_cpu_ns, kCaptures * kCpuTimeBefore_ns / 4);
}

TEST(Capture, AnAutogradThreadInheritsTheScopeItWorksFor) {
  WrittenRecords written;
  Capture capture(std::make_unique<TestSink>(written));
  const std::uint32_t backward = capture.find_or_add_child_scope(0, ScopeKind::phase, "backward");
  const std::uint32_t layer = capture.find_or_add_child_scope(backward, ScopeKind::module, "fc");
  capture.begin_backward(backward);
  EXPECT_EQ(capture.current_scope(), backward);
  std::thread([&] {
    EXPECT_EQ(capture.current_scope(), backward);  // before set_backward_scope reports a layer
    capture.set_backward_scope(layer);
    EXPECT_EQ(capture.current_scope(), layer);
    burn_cpu_time(1'000'000);
  }).join();
  capture.set_backward_scope(layer);  // on a CPU the calling thread runs the backward graph
  EXPECT_EQ(capture.current_scope(), layer);
  capture.end_backward();
  EXPECT_EQ(capture.current_scope(), 0u);
  std::thread([&] { EXPECT_EQ(capture.current_scope(), 0u); }).join();
  capture.finish();
  EXPECT_GE(written.tallies[layer].cpu_ns, 1'000'000);
  EXPECT_EQ(written.tallies[layer].count, 2u);
}

TEST(Capture, CpuTimeOfShortScopesIsSplitAndNoneIsLost) {
  WrittenRecords written;
  Capture capture(std::make_unique<TestSink>(written));
  const std::uint32_t outer_scope = capture.find_or_add_child_scope(0, ScopeKind::phase, "forward");
  const std::uint32_t inner_scope = capture.find_or_add_child_scope(outer_scope, ScopeKind::module, "fc");
  capture.enter(outer_scope);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t depth = capture.enter(inner_scope);
    EXPECT_EQ(depth, 1u);
    burn_cpu_time(5'000);
    capture.leave_to_depth(depth);
  }
  burn_cpu_time(1'000'000);
  capture.leave();
  EXPECT_EQ(capture.scope_depth(), 0u);
  capture.finish();
  EXPECT_EQ(written.tallies[inner_scope].count, 2000u);
  EXPECT_GE(written.tallies[inner_scope].cpu_ns, 8'000'000);
  EXPECT_GE(written.tallies[outer_scope].cpu_ns, 900'000);
  EXPECT_GE(written.tallies[inner_scope].cpu_ns + written.tallies[outer_scope].cpu_ns, 11'000'000);
}

TEST(Capture, RegionsNestAndLinkTheirMarks) {
  WrittenRecords written;
  Capture capture(std::make_unique<TestSink>(written));
  capture.push_region("outer");
  capture.push_region("inner");
  std::thread([&] { EXPECT_FALSE(capture.pop_region()); }).join();  // a thread pops only its own regions
  EXPECT_TRUE(capture.pop_region());
  EXPECT_TRUE(capture.pop_region());
  EXPECT_FALSE(capture.pop_region());
  capture.finish();
  ASSERT_EQ(written.marks.size(), 4u);
  EXPECT_EQ(written.marks[1].id, written.marks[2].id);
  EXPECT_EQ(written.marks[0].id, written.marks[3].id);
  EXPECT_EQ(written.marks[3].name, "outer");
}

TEST(Capture, ExplicitStepsDisableInferredSteps) {
  WrittenRecords written;
  Capture capture(std::make_unique<TestSink>(written));
  EXPECT_TRUE(capture.on_training_loop_event(TrainingLoopEvent::forward_begin_without_gradients));
  capture.step(7);
  EXPECT_FALSE(capture.on_training_loop_event(TrainingLoopEvent::forward_begin_without_gradients));
  capture.finish();
  ASSERT_EQ(written.marks.size(), 3u);
  EXPECT_EQ(written.marks[0].name, "inferred");
  EXPECT_EQ(written.marks[1].kind, MarkKind::step_retraction);
  EXPECT_EQ(written.marks[2].id, 7u);
  ASSERT_EQ(written.steps.size(), 2u);
  EXPECT_EQ(written.steps[1].number, 7);
  EXPECT_EQ(written.steps[0].end_ns, written.steps[1].begin_ns);
}

TEST(Capture, ExplicitStepsAndEpochsRetractInferredOnes) {
  WrittenRecords written;
  Capture capture(std::make_unique<TestSink>(written));
  for (const auto event : {TrainingLoopEvent::loader_iterator_created, TrainingLoopEvent::loader_batch_requested,
                           TrainingLoopEvent::forward_begin_with_gradients, TrainingLoopEvent::backward,
                           TrainingLoopEvent::optimizer_step_end, TrainingLoopEvent::loader_batch_requested})
    capture.on_training_loop_event(event);
  capture.step({});
  capture.step({});
  capture.epoch({});
  capture.finish();
  std::string marks;
  for (const Mark& mark : written.marks) marks += fmt::format("{}:{} ", static_cast<int>(mark.kind), mark.id);
  EXPECT_EQ(marks, "2:0 3:0 2:1 10:2 2:0 2:1 11:1 3:0 ") << "the numbers begin again at 0";
}

TEST(Capture, AnEmptyLastStepIsRetracted) {
  WrittenRecords written;
  Capture capture(std::make_unique<TestSink>(written));
  for (const auto event :
       {TrainingLoopEvent::loader_batch_requested, TrainingLoopEvent::forward_begin_with_gradients,
        TrainingLoopEvent::backward, TrainingLoopEvent::optimizer_step_end, TrainingLoopEvent::loader_batch_requested})
    capture.on_training_loop_event(event);
  capture.finish();
  ASSERT_EQ(written.marks.size(), 3u);
  EXPECT_EQ(written.marks[2].kind, MarkKind::step_retraction);
  EXPECT_EQ(written.marks[2].id, 1u);
}

TEST(Capture, EndsOnceHoweverOftenItIsCalled) {
  WrittenRecords written;
  Capture capture(std::make_unique<TestSink>(written));
  capture.finish();
  capture.enter(
      capture.find_or_add_child_scope(0, ScopeKind::region, "late"));  // as a thread that outlives the capture does
  capture.finish();
  EXPECT_TRUE(written.scopes.empty());
}

}  // namespace
}  // namespace joulemap::capture
