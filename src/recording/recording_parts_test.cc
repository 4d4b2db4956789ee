// SPDX-License-Identifier: Apache-2.0
#include "recording/recording_parts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/small_file.h"
#include "recording/chunk.h"
#include "recording/recording_writer.h"
#include "recording/sampler_lock.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::recording {
namespace {

constexpr std::int64_t kTickCount = 40;

class RecordingParts : public testing::Test {
 protected:
  RecordingParts() { std::filesystem::create_directory(folder_); }

  std::string write_part(const RecordingSource& source, const std::string& channel, std::int64_t first_tick = 0) {
    const std::string path = recording_part_path(folder_, source);
    RecordingWriter writer = *RecordingWriter::create(path, source);
    writer.set_channels(std::vector<Channel>{make_recorded_channel(channel)});
    for (std::int64_t tick = first_tick; tick < first_tick + kTickCount; ++tick) {
      writer.add(make_recorded_sample(0, tick));
      if (tick % 20 != 0) continue;
      EXPECT_TRUE(writer.flush());
    }
    writer.add(Mark{1, MarkKind::step, 1, 1, channel});
    EXPECT_TRUE(writer.finish({}));
    return path;
  }
  void append(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
  }
  Result<RecordingSummary> read(const std::vector<std::string>& paths) {
    recorded_ = {};
    const Result<std::vector<RecordingFile>> files = open_recording(paths);
    if (!files) return files.error();
    return read_recording(*files, recorded_);
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.path() + "/run.joule";
  std::string folder_ = recording_folder(path_);
  RecordingContents recorded_;
};

TEST_F(RecordingParts, PartsAreJoinedIntoOneFileAndTheFolderIsRemoved) {
  write_part(make_recording_source(1), "package-0");
  write_part(make_recording_source(2), "package-1");
  ASSERT_TRUE(*SamplerLock::try_acquire(folder_, "boot-a"));  // leaves its lock file
  const Result<JoinSummary> join_summary = join_parts(folder_, path_);
  ASSERT_TRUE(join_summary) << join_summary.error().message;
  EXPECT_EQ(join_summary->parts, 2u);
  EXPECT_FALSE(file_exists(folder_));
  EXPECT_FALSE(file_exists(path_ + ".tmp"));

  const Result<RecordingSummary> summary = read({path_});
  ASSERT_TRUE(summary);
  EXPECT_TRUE(summary->all_sources_ended);
  EXPECT_TRUE(summary->diagnostics.empty());
  ASSERT_EQ(recorded_.channels.size(), 2u);
  for (std::uint32_t channel = 0; channel < 2; ++channel) {
    const std::vector<Reading> readings = recorded_.list_readings(channel);
    ASSERT_EQ(readings.size(), static_cast<std::size_t>(kTickCount));
    for (std::size_t i = 0; i < readings.size(); ++i) {
      EXPECT_TRUE(are_readings_equal(readings[i], make_recorded_sample(0, static_cast<std::int64_t>(i)).reading));
    }
    EXPECT_EQ(recorded_.marks.at(channel).second.name, recorded_.channels[channel].name);
  }
}

TEST_F(RecordingParts, PartsThatWereNotJoinedAreReadByTheRecordingOrFolderName) {
  write_part(make_recording_source(1), "package-0");
  write_part(make_recording_source(2), "package-1");
  for (const std::string& name : {path_, folder_}) {
    ASSERT_TRUE(read({name})) << name;
    EXPECT_EQ(recorded_.sources.size(), 2u);
    EXPECT_EQ(recorded_.samples.size(), 2u * kTickCount);
  }
}

TEST_F(RecordingParts, DamagedPartsGiveTheirValidDataAndTheJoinedFileReportsTheLoss) {
  write_part(make_recording_source(1), "package-0");
  const std::string damaged_part = write_part(make_recording_source(2), "package-1");
  std::string bytes = file_bytes(damaged_part);
  bytes.resize(bytes.size() - 5);
  std::ofstream(damaged_part, std::ios::binary | std::ios::trunc) << bytes;
  append(folder_ + "/boot-a-3-1.joule", "");
  append(folder_ + "/boot-a-4-1.joule", "this is text");
  const Result<JoinSummary> join_summary = join_parts(folder_, path_);
  ASSERT_TRUE(join_summary) << join_summary.error().message;
  EXPECT_FALSE(file_exists(folder_ + "/boot-a-3-1.joule"));  // empty: nothing is lost
  EXPECT_TRUE(file_exists(folder_ + "/boot-a-4-1.joule"));   // rejected: never deleted
  EXPECT_EQ(join_summary->parts_left, 1u);
  const Result<RecordingSummary> summary = read({path_});
  ASSERT_TRUE(summary);
  EXPECT_EQ(recorded_.samples.size(), 2u * kTickCount);
  EXPECT_FALSE(summary->all_sources_ended);
  EXPECT_EQ(summary->damaged_ranges, 0u);  // the joined file itself is intact
  EXPECT_TRUE(summary->diagnostics.contains("recording_cut"));
  EXPECT_TRUE(summary->diagnostics.contains("recording_part_unreadable"));
}

TEST_F(RecordingParts, PartsWithAGapReportItsTimeInTheJoinedFile) {
  const std::string part = write_part(make_recording_source(1), "package-0");
  std::string bytes = file_bytes(part);
  std::size_t second_samples_offset = 0;  // after a definition, samples and a definition: the second samples chunk
  for (int i = 0; i < 3; ++i) second_samples_offset = bytes.find(kChunkMagic, second_samples_offset + 1);
  bytes[second_samples_offset + kChunkHeaderSize] ^= 1;
  std::ofstream(part, std::ios::binary | std::ios::trunc) << bytes;
  ASSERT_TRUE(join_parts(folder_, path_));
  const Result<RecordingSummary> summary = read({path_});
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->damaged_ranges, 0u);
  ASSERT_TRUE(summary->diagnostics.contains("recording_damaged"));
  const std::string& message = summary->diagnostics.list().at(0).message;
  EXPECT_NE(message.find("samples are missing from 0.024 s to 1.074 s"), std::string::npos) << message;
}

TEST_F(RecordingParts, JoinCopiesUnknownChunks) {
  const std::string part = write_part(make_recording_source(1), "package-0");
  const std::string content = "only a newer version knows";
  ChunkHeader header;
  header.minor = 9;
  header.type = 77;
  header.uncompressed_size = static_cast<std::uint32_t>(content.size());
  append(part, renumber_chunk_source(header, 0, content));
  ASSERT_TRUE(join_parts(folder_, path_));
  EXPECT_NE(file_bytes(path_).find(content), std::string::npos);
  const Result<RecordingSummary> summary = read({path_});
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->chunks_skipped, 1u);
  EXPECT_EQ(summary->minor, 9);
}

TEST_F(RecordingParts, PartsAreReadAlthoughTheRecorderJoinsThemAfterTheyWereListed) {
  write_part(make_recording_source(1), "package-0");
  write_part(make_recording_source(2), "package-1");
  const Result<std::vector<RecordingFile>> files = open_recording(std::vector{path_});
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_TRUE(join_parts(folder_, path_));
  for (const int pass : {1, 2}) {
    RecordingContents recording_contents;
    const Result<RecordingSummary> summary = read_recording(*files, recording_contents);
    ASSERT_TRUE(summary) << "pass " << pass << ": " << summary.error().message;
    EXPECT_EQ(recording_contents.samples.size(), 2u * kTickCount);
    EXPECT_TRUE(summary->diagnostics.empty());
  }
}

TEST_F(RecordingParts, PartsAreReadCompletelyWhileTheRecorderJoinsThem) {
  for (std::int64_t recording = 0; recording < 50; ++recording) {
    const std::string path = fmt::format("{}/{}.joule", directory_.path(), recording);
    folder_ = recording_folder(path);
    std::filesystem::create_directory(folder_);
    for (const std::int64_t pid : {1, 2, 3}) write_part(make_recording_source(pid), fmt::format("package-{}", pid));
    std::atomic<bool> has_joined = false;
    std::thread recorder([&] {
      EXPECT_TRUE(join_parts(folder_, path));
      has_joined = true;
    });
    bool was_joined = false;
    do {
      was_joined = has_joined;
      const Result<RecordingSummary> summary = read({path});
      EXPECT_TRUE(summary) << "recording " << recording << ": " << summary.error().message;
      EXPECT_EQ(recorded_.samples.size(), 3u * kTickCount) << "recording " << recording;
    } while (!was_joined && !HasFailure());
    recorder.join();
  }
}

TEST_F(RecordingParts, PartsAreReadWhenThereAreMoreThanAProcessMayOpen) {
  constexpr int kParts = 400;
  for (int pid = 1; pid <= kParts; ++pid) write_part(make_recording_source(pid), "package-0");
  rlimit original_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &original_limit), 0);
  rlimit low = original_limit;
  low.rlim_cur = 300;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const Result<RecordingSummary> summary = read({path_});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &original_limit), 0);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(recorded_.sources.size(), static_cast<std::size_t>(kParts));
  EXPECT_FALSE(summary->diagnostics.contains("recording_part_unreadable"));
}

TEST_F(RecordingParts, PartsOfANewerMajorVersionPreventTheJoinAndRemain) {
  const std::string part = write_part(make_recording_source(1), "package-0");
  ChunkHeader header;
  header.major = 2;
  append(part, renumber_chunk_source(header, 0, ""));
  const Result<JoinSummary> join_summary = join_parts(folder_, path_);
  ASSERT_FALSE(join_summary);
  EXPECT_EQ(join_summary.error().code, ErrorCode::unsupported);
  EXPECT_TRUE(file_exists(part));
  EXPECT_FALSE(file_exists(path_));
  EXPECT_FALSE(file_exists(path_ + ".tmp"));
}

TEST_F(RecordingParts, PartsLeftBesideTheJoinedFileByACrashAreNotReadTwice) {
  write_part(make_recording_source(1), "package-0");
  const std::string second_part = write_part(make_recording_source(2), "package-1");
  const std::string second_bytes = file_bytes(second_part);
  ASSERT_TRUE(join_parts(folder_, path_));
  std::filesystem::create_directory(folder_);
  append(second_part, second_bytes);
  ASSERT_TRUE(read({path_}));
  EXPECT_EQ(recorded_.sources.size(), 2u);
  EXPECT_EQ(recorded_.samples.size(), 2u * kTickCount);

  ASSERT_TRUE(join_parts(folder_, path_));  // joining again loses nothing
  ASSERT_TRUE(read({path_}));
  EXPECT_EQ(recorded_.sources.size(), 2u);
  EXPECT_EQ(recorded_.samples.size(), 2u * kTickCount);
}

TEST_F(RecordingParts, PartsOfARunningProcessRemainUntilItExits) {
  write_part(make_recording_source(1), "package-0");
  const RecordingSource late_source = make_recording_source(2);
  std::optional<RecordingWriter> writer =
      *RecordingWriter::create(recording_part_path(folder_, late_source), late_source);
  writer->add(Mark{1, MarkKind::step, 1, 1, "late"});
  ASSERT_TRUE(writer->flush());
  const Result<JoinSummary> join_summary = join_parts(folder_, path_);
  ASSERT_TRUE(join_summary);
  EXPECT_EQ(join_summary->parts_left, 1u);
  ASSERT_TRUE(read({path_}));
  EXPECT_EQ(recorded_.sources.size(), 2u);

  ASSERT_TRUE(writer->finish({}));
  ASSERT_TRUE(join_parts(folder_, path_));
  EXPECT_FALSE(file_exists(folder_));
  ASSERT_TRUE(read({path_}));
  EXPECT_EQ(recorded_.sources.size(), 2u);
  EXPECT_EQ(recorded_.marks.size(), 2u);
}

TEST_F(RecordingParts, PartsOfAnotherRecordingAreAnErrorWithARemedy) {
  write_part(make_recording_source(1), "package-0");
  ASSERT_TRUE(join_parts(folder_, path_));
  std::filesystem::create_directory(folder_);
  RecordingSource foreign_source = make_recording_source(2);
  foreign_source.recording_id = "ffff";
  const std::string part = write_part(foreign_source, "package-0");
  const Result<RecordingSummary> path_summary = read({path_});
  ASSERT_FALSE(path_summary);
  EXPECT_NE(path_summary.error().remedy.find(folder_), std::string::npos);
  const Result<RecordingSummary> two_file_summary = read({part, path_});
  ASSERT_FALSE(two_file_summary);
  EXPECT_EQ(two_file_summary.error().code, ErrorCode::usage);
  EXPECT_FALSE(two_file_summary.error().remedy.empty());
}

TEST_F(RecordingParts, DuplicateSamplesOfTwoProcessesCountOnce) {
  write_part(make_recording_source(1), "package-0", 0);
  write_part(make_recording_source(2), "package-0", kTickCount / 2);
  RecordingSource other_machine_source = make_recording_source(3);
  other_machine_source.boot_id = "boot-b";
  write_part(other_machine_source, "package-0", 0);
  const Result<RecordingSummary> summary = read({path_});
  ASSERT_TRUE(summary);
  EXPECT_EQ(recorded_.list_readings(0).size(), static_cast<std::size_t>(kTickCount));
  EXPECT_EQ(recorded_.list_readings(1).size(), static_cast<std::size_t>(kTickCount / 2));
  EXPECT_EQ(recorded_.list_readings(2).size(), static_cast<std::size_t>(kTickCount));
  EXPECT_TRUE(summary->diagnostics.contains("duplicate_samples"));
}

TEST_F(RecordingParts, NamesCannotEscapeTheFolder) {
  RecordingSource source = make_recording_source(1);
  source.boot_id = "../../etc/x y";
  EXPECT_EQ(recording_part_path("/f", source), "/f/______etc_x_y-1-1000000000.joule");
}

TEST_F(RecordingParts, MissingPartsAreAnErrorWithARemedy) {
  const Result<RecordingSummary> summary = read({directory_.path() + "/other.joule"});
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, ErrorCode::not_found);
  EXPECT_FALSE(summary.error().remedy.empty());
  EXPECT_FALSE(join_parts(folder_, path_));
}

TEST_F(RecordingParts, ProcessesElectOneSamplerPerBoot) {
  {
    const Result<std::optional<SamplerLock>> first_lock = SamplerLock::try_acquire(folder_, "boot-a");
    EXPECT_TRUE(*first_lock);
    EXPECT_FALSE(*SamplerLock::try_acquire(folder_, "boot-a"));
    EXPECT_TRUE(*SamplerLock::try_acquire(folder_, "boot-b"));
  }
  EXPECT_TRUE(*SamplerLock::try_acquire(folder_, "boot-a"));
}

TEST_F(RecordingParts, ProcessesElectOneSamplerWithoutFlock) {
  const auto failing_flock = [](int, int) {
    errno = ENOLCK;
    return -1;
  };
  {
    const Result<std::optional<SamplerLock>> first_lock = SamplerLock::try_acquire(folder_, "boot-a", failing_flock);
    ASSERT_TRUE(first_lock) << first_lock.error().message;
    ASSERT_TRUE(*first_lock);
    EXPECT_TRUE((*first_lock)->is_backed_by_owner_file());
    EXPECT_FALSE(*SamplerLock::try_acquire(folder_, "boot-a", failing_flock));
    EXPECT_TRUE(*SamplerLock::try_acquire(folder_, "boot-b", failing_flock));
  }
  EXPECT_TRUE(*SamplerLock::try_acquire(folder_, "boot-a", failing_flock));
}

TEST_F(RecordingParts, TheOwnerFileOfTheSamplerIsRemovedWithTheFolder) {
  write_part(make_recording_source(1), "package-0");
  const auto failing_flock = [](int, int) {
    errno = EOPNOTSUPP;
    return -1;
  };
  const Result<std::optional<SamplerLock>> sampler_lock = SamplerLock::try_acquire(folder_, "boot-a", failing_flock);
  ASSERT_TRUE(sampler_lock && *sampler_lock);
  const Result<JoinSummary> join_summary = join_parts(folder_, path_);
  ASSERT_TRUE(join_summary) << join_summary.error().message;
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(RecordingParts, SkipEntriesThatAreNoFiles) {
  const std::string part = write_part(make_recording_source(1), "package-0");
  ASSERT_EQ(::mkfifo((folder_ + "/fifo.joule").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_ + "/folder.joule");
  std::filesystem::create_symlink(part, folder_ + "/link.joule");
  const Result<RecordingSummary> read_parts = read({folder_});
  ASSERT_TRUE(read_parts) << read_parts.error().message;
  const Result<JoinSummary> join_summary = join_parts(folder_, path_);
  ASSERT_TRUE(join_summary) << join_summary.error().message;
  for (const Diagnostics* notes : {&read_parts->diagnostics, &join_summary->diagnostics}) {
    EXPECT_EQ(std::ranges::count(notes->list(), "recording_part_skipped", &Diagnostic::code), 3);
  }
  EXPECT_EQ(join_summary->parts, 1u);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/fifo.joule"));
  EXPECT_EQ(read({path_})->samples, static_cast<std::uint64_t>(kTickCount));
}

TEST_F(RecordingParts, AnUnreadablePartRemainsAndIsReported) {
  std::filesystem::permissions(write_part(make_recording_source(1), "package-0"), std::filesystem::perms::all);
  const std::string unreadable_part = write_part(make_recording_source(2), "package-1");
  std::filesystem::permissions(unreadable_part, std::filesystem::perms::none);
  std::filesystem::permissions(directory_.path(), std::filesystem::perms::all);
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::seteuid(65534), 0);  // permissions do not apply to root
  }
  const Result<JoinSummary> join_summary = join_parts(folder_, path_);
  const Result<RecordingSummary> read_joined = read({path_});
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_TRUE(join_summary && read_joined);
  EXPECT_TRUE(join_summary->diagnostics.contains("recording_part_unreadable"));
  EXPECT_TRUE(read_joined->diagnostics.contains("recording_part_unreadable"));
  EXPECT_EQ(read_joined->samples, static_cast<std::uint64_t>(kTickCount));
  EXPECT_TRUE(std::filesystem::exists(unreadable_part));
}

}  // namespace
}  // namespace joulemap::recording
