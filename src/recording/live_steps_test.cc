// SPDX-License-Identifier: Apache-2.0
#include "recording/live_steps.h"

#include <gtest/gtest.h>

#include <fstream>

#include "recording/recording_parts.h"
#include "recording/recording_writer.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::recording {
namespace {

class LiveStepsTest : public testing::Test {
 protected:
  RecordingWriter writer(int process) {
    const RecordingSource source = make_recording_source(process);
    return *RecordingWriter::create(recording_part_path(directory_.path(), source), source);
  }
  static void add_steps(RecordingWriter& writer, std::int64_t first_step, std::int64_t count) {
    for (std::int64_t step = first_step; step < first_step + count; ++step)
      writer.add(Mark{step, MarkKind::step, static_cast<std::uint64_t>(step), 1, ""});
    ASSERT_TRUE(writer.flush());
  }

  TemporaryDirectory directory_;
  LiveSteps steps_{directory_.path()};
};

TEST_F(LiveStepsTest, StepsAreCountedOnceWhenMoreIsAppended) {
  EXPECT_EQ(steps_.count_steps(), 0U);
  RecordingWriter process = writer(1);
  add_steps(process, 0, 3);
  EXPECT_EQ(steps_.count_steps(), 3U);
  EXPECT_EQ(steps_.count_steps(), 3U);
  add_steps(process, 3, 4);
  EXPECT_EQ(steps_.count_steps(), 7U);
}

TEST_F(LiveStepsTest, StepsOfSeveralRanksAreThoseOfTheFarthest) {
  RecordingWriter first_writer = writer(1);
  RecordingWriter second_writer = writer(2);
  add_steps(first_writer, 0, 3);
  add_steps(second_writer, 0, 5);
  EXPECT_EQ(steps_.count_steps(), 5U);
}

TEST_F(LiveStepsTest, EvaluationStepsAreNotCounted) {
  RecordingWriter process = writer(1);
  add_steps(process, 0, 5);
  process.add(Mark{9, MarkKind::evaluation, 2, 1, ""});
  ASSERT_TRUE(process.flush());
  EXPECT_EQ(steps_.count_steps(), 3U);
}

TEST_F(LiveStepsTest, RetractedStepsAreNotCounted) {
  RecordingWriter process = writer(1);
  add_steps(process, 0, 5);
  process.add(Mark{9, MarkKind::evaluation, 2, 1, ""});
  process.add(Mark{10, MarkKind::step_retraction, 5, 1, ""});
  add_steps(process, 0, 3);
  ASSERT_TRUE(process.flush());
  EXPECT_EQ(steps_.count_steps(), 3U);
}

TEST_F(LiveStepsTest, StepsOfAChunkThatIsBeingWrittenAreNotCounted) {
  RecordingWriter process = writer(1);
  add_steps(process, 0, 3);
  EXPECT_EQ(steps_.count_steps(), 3U);
  std::ofstream(recording_part_path(directory_.path(), make_recording_source(1)), std::ios::binary | std::ios::app)
      << "JM";
  EXPECT_EQ(steps_.count_steps(), 3U);
}

}  // namespace
}  // namespace joulemap::recording
