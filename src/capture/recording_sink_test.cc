// SPDX-License-Identifier: Apache-2.0
#include "capture/recording_sink.h"
#include "capture/capture_worker.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "recording/recording_reader.h"
#include "support/temporary_directory.h"

namespace joulemap::capture {
namespace {

constexpr const char* kRecordingId = "0123456789abcdef0123456789abcdef";

// Sets the environment of a process that `joulemap record` started, for one test.
class RecordedProcess {
 public:
  explicit RecordedProcess(const std::string& folder) {
    ::setenv("JOULEMAP_RECORDING", folder.c_str(), 1);
    ::setenv("JOULEMAP_RECORDING_ID", kRecordingId, 1);
  }
  ~RecordedProcess() {
    ::unsetenv("JOULEMAP_RECORDING");
    ::unsetenv("JOULEMAP_RECORDING_ID");
  }
};

struct MarksAndMetrics : recording::RecordingVisitor {
  void on_source(std::uint32_t, const RecordingSource& source) override { sources.push_back(source); }
  void on_mark(std::uint32_t, const Mark& mark) override { marks.push_back(mark); }
  void on_metric(std::uint32_t, const Metric& metric) override { metrics.push_back(metric); }
  std::vector<RecordingSource> sources;
  std::vector<Mark> marks;
  std::vector<Metric> metrics;
};

TEST(RecordingSink, AnUnrecordedProcessHasNoLog) { EXPECT_EQ(open_recording_sink(), nullptr); }

TEST(RecordingSink, MarksAndMetricsAreInAPartOfTheRecording) {
  const TemporaryDirectory folder;
  const RecordedProcess recorded(folder.path());
  {
    std::unique_ptr<CaptureSink> sink = open_recording_sink();
    ASSERT_NE(sink, nullptr);
    MarkLog log;
    const CaptureWorker worker(std::move(sink), log);
    log.add_step(3, 1);
    log.add_mark(MarkKind::region_begin, 9, "forward");
    log.add_mark(MarkKind::region_end, 9, "forward");
    log.add_metric("loss", 0.25, 2);
  }
  std::vector<std::string> parts;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) parts.push_back(entry.path());
  ASSERT_EQ(parts.size(), 1u);
  MarksAndMetrics marks_and_metrics;
  const Result<recording::RecordingSummary> summary = recording::read_recording(parts[0], marks_and_metrics);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_TRUE(summary->all_sources_ended);
  ASSERT_EQ(marks_and_metrics.sources.size(), 1u);
  EXPECT_EQ(marks_and_metrics.sources[0].recording_id, kRecordingId);
  EXPECT_EQ(marks_and_metrics.sources[0].role, "process");
  ASSERT_EQ(marks_and_metrics.marks.size(), 3u);
  EXPECT_EQ(marks_and_metrics.marks[0].id, 3u);
  EXPECT_EQ(marks_and_metrics.marks[1].name, "forward");
  EXPECT_EQ(marks_and_metrics.marks[1].id, marks_and_metrics.marks[2].id);
  ASSERT_EQ(marks_and_metrics.metrics.size(), 1u);
  EXPECT_EQ(marks_and_metrics.metrics[0].step, 3);
  EXPECT_DOUBLE_EQ(marks_and_metrics.metrics[0].value, 0.25);
}

TEST(RecordingSink, AFolderThatIsGoneDoesNotStopTheProgram) {
  const RecordedProcess recorded("/no/such/folder");
  testing::internal::CaptureStderr();
  EXPECT_EQ(open_recording_sink(), nullptr);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("not recorded"), std::string::npos);
}

}  // namespace
}  // namespace joulemap::capture
