// SPDX-License-Identifier: Apache-2.0
#include "recording/part_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/small_file.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::recording {
namespace {

namespace fs = std::filesystem;

class PartFolderTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  std::string create_file(const std::string& name, const std::string& content) const {
    return directory_.write(name, content);
  }
  static std::string read_content(const std::string& path) {
    const Result<std::string> content = read_small_file(path);
    return content ? *content : "unreadable";
  }
  std::vector<std::string> names() const { return *list_directory(directory_.path()); }

  // Leaves a folder as a killed recorder does.
  void create_leftover_parts(const std::string& file) const {
    Result<PartFolder> folder = PartFolder::create(file, {"true"});
    ASSERT_TRUE(folder) << folder.error().message;
    Result<RecordingWriter> writer = folder->open_part("recorder");
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->flush());
  }
  static std::string recording_id_of(const std::string& path) {
    const Result<std::vector<RecordingFile>> files = open_recording(std::vector{path});
    return files ? *recording_id_of_file(files->front().path) : files.error().message;
  }
  static void record(const std::string& file, const RecordingEnd& end = {}) {
    Result<PartFolder> folder = PartFolder::create(file, {"true"});
    ASSERT_TRUE(folder) << folder.error().message;
    Result<RecordingWriter> writer = folder->open_part("recorder");
    ASSERT_TRUE(writer && folder->rename_older_recording());
    ASSERT_TRUE(writer->finish(end));
    const Result<JoinSummary> join_summary = folder->join();
    ASSERT_TRUE(join_summary) << join_summary.error().message;
    EXPECT_TRUE(join_summary->diagnostics.empty());
  }
  static void expect_refused(const std::string& file, const std::string& expected_text) {
    const Result<PartFolder> folder = PartFolder::create(file, {"true"});
    ASSERT_FALSE(folder) << file;
    EXPECT_EQ(folder.error().code, ErrorCode::usage);
    EXPECT_NE(folder.error().message.find(expected_text), std::string::npos) << folder.error().message;
    EXPECT_FALSE(folder.error().remedy.empty());
  }

  TemporaryDirectory directory_;
  std::string file_ = path("run.joule");
};

TEST_F(PartFolderTest, LeaveAForeignFolderUnchanged) {
  fs::create_directory(path("conf.d"));
  create_file("conf.d/settings", "precious");
  expect_refused(path("conf"), "conf.d");
  fs::create_directory(path("empty.d"));
  expect_refused(path("empty"), "empty.d");
  EXPECT_EQ(read_content(path("conf.d/settings")), "precious");
  EXPECT_EQ(names(), (std::vector<std::string>{"conf.d", "empty.d"}));
}

TEST_F(PartFolderTest, LeaveAFolderAtTheBackupPathUnchanged) {
  record(file_);
  fs::create_directory(path("run.joule.old"));
  create_file("run.joule.old/notes", "precious");
  expect_refused(file_, "run.joule.old");
  EXPECT_EQ(read_content(path("run.joule.old/notes")), "precious");
  EXPECT_EQ(names(), (std::vector<std::string>{"run.joule", "run.joule.old"}));
}

TEST_F(PartFolderTest, MoveAForeignFileOnceAndNeverReplaceIt) {
  create_file("run.joule", "a text of the user");
  record(file_);
  EXPECT_EQ(read_content(path("run.joule.old")), "a text of the user");
  expect_refused(file_, "run.joule.old");
  EXPECT_EQ(read_content(path("run.joule.old")), "a text of the user");
}

TEST_F(PartFolderTest, PartFoldersWithAUserFileInsideAreNotRemoved) {
  create_leftover_parts(file_);
  create_file("run.joule.d/notes.txt", "precious");
  expect_refused(file_, "notes.txt");
  EXPECT_EQ(read_content(path("run.joule.d/notes.txt")), "precious");
}

TEST_F(PartFolderTest, MovePartsOfAKilledRecorderAside) {
  create_leftover_parts(file_);
  const std::string id = recording_id_of(file_);
  record(file_);
  EXPECT_EQ(recording_id_of(path("run.joule.old")), id);
  EXPECT_EQ(names(), (std::vector<std::string>{"run.joule", "run.joule.old.d"}));
}

TEST_F(PartFolderTest, NeverReplaceABackupByTheRecordingOfAFailedCommand) {
  const RecordingEnd failed_end{.exit_code = 2};
  record(file_);
  const std::string successful_recording_id = recording_id_of(file_);
  for (int i = 0; i < 3; ++i) {
    record(file_, failed_end);
    EXPECT_EQ(recording_id_of(path("run.joule.old")), successful_recording_id);
  }
  const RecordingEnd interrupted{.exit_code = 130, .signal = 2};
  record(file_, interrupted);
  const std::string interrupted_id = recording_id_of(file_);
  record(file_);
  EXPECT_EQ(recording_id_of(path("run.joule.old")), interrupted_id);
}

TEST_F(PartFolderTest, PartFoldersOfEarlierVersionsAreRecognizedByTheirParts) {
  create_leftover_parts(file_);
  fs::remove(path("run.joule.d") + "/" + std::string(kFolderLockName));
  const std::string id = recording_id_of(file_);
  record(file_);
  EXPECT_EQ(recording_id_of(path("run.joule.old")), id);
}

TEST_F(PartFolderTest, PartFoldersWithoutALockFileAreNotRemovedWithAFakePartInside) {
  create_leftover_parts(file_);
  fs::remove(path("run.joule.d") + "/" + std::string(kFolderLockName));
  create_file("run.joule.d/notes.joule", "no recording");
  expect_refused(file_, "notes.joule");
}

TEST_F(PartFolderTest, RecordingsAreUnchangedAfterACommandThatCouldNotStart) {
  record(file_);
  record(file_);
  const std::string id = recording_id_of(file_);
  const std::string older_id = recording_id_of(path("run.joule.old"));
  const std::vector<std::string> initial_names = names();
  Result<PartFolder> folder = PartFolder::create(file_, {"no-such-command"});
  ASSERT_TRUE(folder && folder->open_part("recorder"));
  folder->remove();
  EXPECT_EQ(names(), initial_names);
  EXPECT_EQ(recording_id_of(file_), id);
  EXPECT_EQ(recording_id_of(path("run.joule.old")), older_id);
}

TEST_F(PartFolderTest, PartsOfTwoKilledRecordersAreUnchangedAfterACommandThatCouldNotStart) {
  create_leftover_parts(file_);
  const std::string older_id = recording_id_of(file_);
  create_leftover_parts(file_);
  const std::string id = recording_id_of(file_);
  Result<PartFolder> folder = PartFolder::create(file_, {"no-such-command"});
  ASSERT_TRUE(folder && folder->open_part("recorder"));
  folder->remove();
  EXPECT_EQ(recording_id_of(path("run.joule.d")), id);
  EXPECT_EQ(recording_id_of(path("run.joule.old.d")), older_id);
  EXPECT_EQ(names(), (std::vector<std::string>{"run.joule.d", "run.joule.old.d"}));
}

TEST_F(PartFolderTest, RefuseASecondRecorderAndNameTheOwner) {
  const Result<PartFolder> first_folder = PartFolder::create(file_, {"true"});
  ASSERT_TRUE(first_folder);
  const std::string process = "process " + std::to_string(::getpid());
  fs::create_symlink("run.joule", path("link.joule"));
  fs::create_directory_symlink(directory_.path(), path("folder"));
  for (const std::string& name : {file_, path("./run.joule"), path("link.joule"), path("folder/run.joule")}) {
    expect_refused(name, process);
  }
  expect_refused(file_ + "/", "not a file");
  EXPECT_EQ(names(), (std::vector<std::string>{"folder", "link.joule", "run.joule.d"}));
}

TEST_F(PartFolderTest, PartFoldersAreReleasedWhenTheRecorderExits) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Result<PartFolder> folder = PartFolder::create(file_, {"true"});
    ::_exit(folder ? 0 : 1);  // no destructor runs, as after a kill
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  record(file_);
}

int fail_flock_without_server(int /*fd*/, int /*operation*/) {
  errno = ENOLCK;
  return -1;
}

TEST_F(PartFolderTest, RefuseASecondRecorderWithoutFlock) {
  const std::string folder = path("run.joule.d");
  const Result<FolderClaim> first_claim =
      FolderClaim::claim_folder(folder, path("run.joule.old.d"), &fail_flock_without_server);
  ASSERT_TRUE(first_claim) << first_claim.error().message;
  const Result<FolderClaim> second_claim =
      FolderClaim::claim_folder(folder, path("run.joule.old.d"), &fail_flock_without_server);
  ASSERT_FALSE(second_claim);
  EXPECT_NE(second_claim.error().message.find("process " + std::to_string(::getpid())), std::string::npos);
  EXPECT_EQ(names(), std::vector<std::string>{"run.joule.d"});
}

TEST_F(PartFolderTest, DoNotOverwriteAFileThatAppearsMeanwhile) {
  Result<PartFolder> folder = PartFolder::create(file_, {"true"});
  Result<RecordingWriter> writer = folder->open_part("recorder");
  ASSERT_TRUE(folder->rename_older_recording() && writer->finish({}));
  create_file("run.joule", "precious");
  EXPECT_FALSE(folder->join());
  EXPECT_EQ(read_content(file_), "precious");
  EXPECT_TRUE(open_recording(std::vector{path("run.joule.d")}));
}

TEST_F(PartFolderTest, WriteTheRecordingToTheTargetOfALink) {
  fs::create_directory(path("disk"));
  fs::create_symlink("disk/run.joule", path("link.joule"));
  record(path("link.joule"));
  record(path("link.joule"));
  EXPECT_TRUE(fs::is_symlink(path("link.joule")));
  EXPECT_NE(recording_id_of(path("disk/run.joule")), recording_id_of(path("disk/run.joule.old")));
  EXPECT_EQ(names(), (std::vector<std::string>{"disk", "link.joule"}));
}

TEST_F(PartFolderTest, LeaveNeighbouringFilesUnchanged) {
  create_file("run.joule.tmp", "precious");
  record(file_);
  EXPECT_EQ(read_content(path("run.joule.tmp")), "precious");
}

}  // namespace
}  // namespace joulemap::recording
