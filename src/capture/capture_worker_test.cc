// SPDX-License-Identifier: Apache-2.0
#include "capture/capture_worker.h"

#include <gtest/gtest.h>

#include <vector>

namespace joulemap::capture {
namespace {

struct WrittenMarks {
  std::vector<Mark> marks;
  std::vector<Metric> metrics;
  Diagnostics diagnostics;
  bool fails_writes = false;
  int finished = 0;
};

class TestSink final : public CaptureSink {
 public:
  explicit TestSink(WrittenMarks& written) : written_marks_(written) {}
  void add(Mark mark) override { written_marks_.marks.push_back(std::move(mark)); }
  void add(Metric metric) override { written_marks_.metrics.push_back(std::move(metric)); }
  void add(EnvironmentFact) override {}
  void add(Activity) override {}
  void add(EngineSteps) override {}
  Status flush() override {
    if (written_marks_.fails_writes) return Error{ErrorCode::io, "the disk is full", ""};
    return Done{};
  }
  Status finish(Diagnostics diagnostics) override {
    written_marks_.diagnostics = std::move(diagnostics);
    ++written_marks_.finished;
    return Done{};
  }

 private:
  WrittenMarks& written_marks_;
};

TEST(CaptureWorker, WritesEverythingInOrderWhenItIsFinished) {
  WrittenMarks written;
  MarkLog log;
  CaptureWorker worker(std::make_unique<TestSink>(written), log);
  log.add_mark(MarkKind::window_begin, 7, "epoch");
  log.add_mark(MarkKind::window_end, 7, "");
  worker.finish();
  ASSERT_EQ(written.marks.size(), 2u);
  EXPECT_EQ(written.marks[0].name, "epoch");
  EXPECT_EQ(written.marks[0].id, written.marks[1].id);
  EXPECT_LE(written.marks[0].time_ns, written.marks[1].time_ns);
  worker.finish();
  EXPECT_EQ(written.finished, 1);
}

TEST(CaptureWorker, CountsStepsUnlessTheyAreNumbered) {
  WrittenMarks written;
  MarkLog log;
  CaptureWorker worker(std::make_unique<TestSink>(written), log);
  log.add_metric("loss", 2.0, 1);
  log.add_step({}, 5);
  log.add_step({}, 5);
  log.add_step(10, 6);
  log.add_step({}, 5);
  log.add_metric("loss", 1.0, 2);
  worker.finish();
  std::vector<std::uint64_t> numbers;
  for (const Mark& mark : written.marks) numbers.push_back(mark.id);
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{0, 1, 10, 11}));
  EXPECT_FALSE(written.metrics[0].step);
  EXPECT_EQ(written.metrics[1].step, 11);
}

TEST(CaptureWorker, RecordsThatMarksCouldNotBeWritten) {
  WrittenMarks written;
  written.fails_writes = true;
  MarkLog log;
  CaptureWorker worker(std::make_unique<TestSink>(written), log);
  log.add_step({}, 5);
  worker.finish();
  EXPECT_TRUE(written.diagnostics.contains("write_failed"));
}

}  // namespace
}  // namespace joulemap::capture
