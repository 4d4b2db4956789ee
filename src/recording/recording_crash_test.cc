// SPDX-License-Identifier: Apache-2.0
//
// Tests what remains after the writer is killed, and when the disk is full.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "base/file_descriptor.h"
#include "recording/recording_reader.h"
#include "recording/recording_writer.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::recording {
namespace {

constexpr std::int64_t kTicksPerFlush = 20;

// Writes for ever and reports the number of completed flushes through the pipe.
[[noreturn]] void write_until_killed(const std::string& path, int pipe_end) {
  Result<RecordingWriter> writer = RecordingWriter::create(path, make_recording_source());
  if (!writer) ::_exit(1);
  writer->set_channels(make_recorded_channels(2));
  for (std::int64_t tick = 0;; ++tick) {
    for (std::uint32_t channel = 0; channel < 2; ++channel) writer->add(make_recorded_sample(channel, tick));
    if ((tick + 1) % kTicksPerFlush != 0) continue;
    const std::int64_t flushes = (tick + 1) / kTicksPerFlush;
    if (!writer->flush() || ::write(pipe_end, &flushes, sizeof flushes) != sizeof flushes) ::_exit(1);
  }
}

TEST(RecordingCrash, FlushedDataSurvivesAKillAtAnyTime) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/run.joule";
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    FileDescriptor reading(ends[0]);
    FileDescriptor writing(ends[1]);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) write_until_killed(path, writing.get());
    writing.reset();
    std::int64_t flush_count = 0;
    const auto target_flush_count = static_cast<std::int64_t>(1 + random() % 60);
    while (flush_count < target_flush_count &&
           ::read(reading.get(), &flush_count, sizeof flush_count) == sizeof flush_count) {
    }
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    while (::read(reading.get(), &flush_count, sizeof flush_count) == sizeof flush_count) {
    }
    ASSERT_GE(flush_count, target_flush_count);

    RecordingContents recording_contents;
    const Result<RecordingSummary> summary = read_recording(path, recording_contents);
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_FALSE(summary->all_sources_ended);
    const std::vector<Reading> readings = recording_contents.list_readings(1);
    ASSERT_GE(static_cast<std::int64_t>(readings.size()), flush_count * kTicksPerFlush);
    for (std::size_t i = 0; i < readings.size(); ++i) {
      ASSERT_TRUE(are_readings_equal(readings[i], make_recorded_sample(1, static_cast<std::int64_t>(i)).reading));
    }
  }
}

// Limits the size of files that this process writes: simulates a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &original_limit_);
    const rlimit limited{bytes, original_limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &original_limit_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit original_limit_{};
};

class RecordingFullDisk : public testing::Test {
 protected:
  RecordingFullDisk()
      : path_(directory_.path() + "/run.joule"), writer_(*RecordingWriter::create(path_, make_recording_source())) {
    writer_.set_channels(make_recorded_channels(2));
  }
  Status write_second() {
    for (std::int64_t i = 0; i < kTicksPerFlush; ++i, ++tick_) {
      for (std::uint32_t channel = 0; channel < 2; ++channel) writer_.add(make_recorded_sample(channel, tick_));
    }
    return writer_.flush();
  }

  TemporaryDirectory directory_;
  std::string path_;
  RecordingWriter writer_;
  std::int64_t tick_ = 0;
};

TEST_F(RecordingFullDisk, KeepsWrittenChunksAndResumesWhenThereIsSpace) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(write_second());
  const std::uint64_t written_bytes = writer_.bytes_written();
  {
    const FileSizeLimit size_limit(written_bytes + 30);
    for (int i = 0; i < 2; ++i) {
      const Status write_status = write_second();
      ASSERT_FALSE(write_status);
      EXPECT_NE(write_status.error().message.find(path_), std::string::npos);
      EXPECT_EQ(file_bytes(path_).size(), written_bytes);
      EXPECT_EQ(writer_.pending_item_count(), 0u);
    }
  }
  ASSERT_TRUE(write_second());
  ASSERT_TRUE(writer_.finish({}));

  RecordingContents recording_contents;
  const Result<RecordingSummary> summary = read_recording(path_, recording_contents);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->damaged_ranges, 0u);
  EXPECT_TRUE(summary->all_sources_ended);
  EXPECT_EQ(recording_contents.samples.size(), 4u * 2 * kTicksPerFlush);
  ASSERT_EQ(recording_contents.ends.size(), 1u);
  EXPECT_EQ(recording_contents.ends[0].second.lost_samples, 2u * 2 * kTicksPerFlush);
  EXPECT_TRUE(recording_contents.ends[0].second.diagnostics.contains("recording_write_failed"));
}

TEST_F(RecordingFullDisk, ADiskFullUntilTheEndIsReportedAndWrittenChunksRemain) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(write_second());
  {
    const FileSizeLimit size_limit(writer_.bytes_written());
    EXPECT_FALSE(write_second());
    EXPECT_FALSE(writer_.finish({}));
  }
  RecordingContents recording_contents;
  const Result<RecordingSummary> summary = read_recording(path_, recording_contents);
  ASSERT_TRUE(summary);
  EXPECT_FALSE(summary->all_sources_ended);
  EXPECT_EQ(recording_contents.samples.size(), 3u * 2 * kTicksPerFlush);
}

TEST_F(RecordingFullDisk, WritesAsManyChunksOfAFlushAsFit) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(write_second());
  Activity activity;
  activity.end_ns = 1'000'000;
  activity.scopes = {{1, 0, ScopeKind::op, "mm"}};
  const std::uint64_t initial_bytes = writer_.bytes_written();
  writer_.add(activity);
  ASSERT_TRUE(writer_.flush());
  const std::uint64_t written_bytes = writer_.bytes_written();
  const std::uint64_t chunk_size = written_bytes - initial_bytes;
  {
    const FileSizeLimit size_limit(written_bytes + 2 * chunk_size + chunk_size / 2);
    for (int i = 0; i < 3; ++i) writer_.add(activity);
    EXPECT_FALSE(writer_.flush());
  }
  EXPECT_EQ(file_bytes(path_).size(), written_bytes + 2 * chunk_size);
  EXPECT_EQ(writer_.lost_event_count(), 1u);
  EXPECT_EQ(writer_.pending_item_count(), 0u);
}

TEST_F(RecordingFullDisk, WithADiskFullFromTheStartDefinitionsAreWrittenOnceThereIsSpace) {
  {
    const FileSizeLimit size_limit(0);
    EXPECT_FALSE(write_second());
  }
  ASSERT_TRUE(write_second());
  ASSERT_TRUE(writer_.finish({}));
  RecordingContents recording_contents;
  ASSERT_TRUE(read_recording(path_, recording_contents));
  EXPECT_EQ(recording_contents.samples.size(), 2u * kTicksPerFlush);
  EXPECT_EQ(recording_contents.channels.size(), 2u);
}

}  // namespace
}  // namespace joulemap::recording
