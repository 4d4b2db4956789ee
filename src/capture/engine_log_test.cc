// SPDX-License-Identifier: Apache-2.0
#include "capture/engine_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace joulemap::capture {
namespace {

class EngineStepsSink final : public CaptureSink {
 public:
  void add(Mark) override {}
  void add(Metric) override {}
  void add(EnvironmentFact) override {}
  void add(Activity) override {}
  void add(EngineSteps steps) override { batches.push_back(std::move(steps)); }
  Status flush() override { return Done{}; }
  Status finish(Diagnostics) override { return Done{}; }
  std::vector<EngineSteps> batches;
};

ReportedRequest request(std::string_view id, std::uint32_t prompt, std::uint32_t decoded, std::uint8_t events = 0) {
  return {id, "acme", "llama", {0, prompt, 0, decoded, 0, prompt + decoded, events}};
}

TEST(EngineLog, ARequestKeepsItsNumberUntilItFinishes) {
  EngineLog log;
  log.add_step(1, 2, std::vector{request("a", 10, 1), request("b", 3, 1)});
  log.add_step(3, 4, std::vector{request("b", 0, 1, kRequestFinished), request("a", 0, 1)});
  log.add_step(5, 6, std::vector{request("b", 7, 1)});
  EngineStepsSink sink;
  log.drain_into(sink);
  ASSERT_EQ(sink.batches.size(), 1u);
  const EngineSteps& steps = sink.batches[0];
  ASSERT_EQ(steps.requests.size(), 3u);
  EXPECT_EQ(steps.requests[2].id, "b");
  EXPECT_EQ(steps.requests[2].tenant, "acme");
  std::vector<std::uint32_t> numbers;
  for (const StepRequest& entry : steps.entries) numbers.push_back(entry.request);
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 1, 1, 0, 2}));
  EXPECT_TRUE(log.diagnostics().empty());
}

TEST(EngineLog, AnEventOfAnUnknownRequestIsCounted) {
  EngineLog log;
  log.add_step(5, 5, std::vector{request("ghost", 0, 0, kRequestAborted)});
  log.add_step(5, 5, std::vector{request("real", 4, 1, kRequestFinished)});
  log.add_step(6, 6, std::vector{request("real", 0, 0, kRequestFinished)});
  EXPECT_TRUE(log.diagnostics().contains("engine_events_unknown"));
  EXPECT_EQ(log.diagnostics().list()[0].count, 2u);
}

TEST(EngineLog, AStepThatEndsBeforeItBeginsHasNoDuration) {
  EngineLog log;
  log.add_step(9, 5, std::vector{request("a", 4, 1)});
  EngineStepsSink sink;
  log.drain_into(sink);
  EXPECT_EQ(sink.batches.at(0).steps.at(0).begin_ns, sink.batches[0].steps[0].end_ns);
  EXPECT_TRUE(log.diagnostics().contains("engine_steps_reversed"));
}

TEST(EngineLog, AMillionUnfinishedRequestsDoNotGrowTheMemory) {
  EngineLog log;
  EngineStepsSink sink;
  for (int i = 0; i < 1'000'001; ++i) {
    const std::string id = fmt::format("{}", i);
    log.add_step(i, i + 1, std::vector{request(id, 1, 1)});
    if (i % 100'000 == 0) log.drain_into(sink);
    sink.batches.clear();
  }
  EXPECT_TRUE(log.diagnostics().contains("engine_requests_unfinished"));
}

}  // namespace
}  // namespace joulemap::capture
