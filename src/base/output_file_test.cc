// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/small_file.h"
#include "support/temporary_directory.h"

namespace joulemap {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  std::string create_file(const std::string& name, const std::string& content) const {
    return directory_.write(name, content);
  }
  static std::string read_content(const std::string& path) {
    const Result<std::string> content = read_small_file(path);
    return content ? *content : "unreadable";
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_.path()), {}));
  }

  TemporaryDirectory directory_;
};

TEST_F(OutputFileTest, AnOutputFileAppearsComplete) {
  ASSERT_TRUE(replace_file(path("new"), "text"));
  EXPECT_EQ(read_content(path("new")), "text");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(OutputFileTest, TheOldFileRemainsUntilTheContentIsComplete) {
  const std::string older_path = create_file("older", "kept");
  const Result<OutputFile> opened_file = OutputFile::open(older_path);
  const Result<OutputFile> new_file = OutputFile::open(path("fresh"));
  ASSERT_TRUE(opened_file && new_file);
  EXPECT_EQ(read_content(older_path), "kept");
  EXPECT_FALSE(fs::exists(path("fresh")));
}

TEST_F(OutputFileTest, PermissionsOfAnExistingFileArePreserved) {
  const std::string older_path = create_file("older", "x");
  ASSERT_EQ(::chmod(older_path.c_str(), 0640), 0);
  ASSERT_TRUE(replace_file(older_path, "new"));
  EXPECT_EQ(fs::status(older_path).permissions(), fs::perms(0640));
  EXPECT_EQ(read_content(older_path), "new");
}

TEST_F(OutputFileTest, AnOutputThatIsAnInputUnderAnyNameIsRefused) {
  const std::string input = create_file("input", "precious");
  fs::create_symlink("input", path("link"));
  fs::create_hard_link(input, path("hard"));
  fs::create_directory_symlink(directory_.path(), path("folder"));
  for (const std::string& name : {input, path("link"), path("hard"), path("folder/input"), path("./input")}) {
    const Result<OutputFile> file = OutputFile::open(name, std::vector{input});
    ASSERT_FALSE(file) << name;
    EXPECT_EQ(file.error().code, ErrorCode::usage);
    EXPECT_NE(file.error().message.find("input of this command"), std::string::npos);
    EXPECT_FALSE(file.error().remedy.empty());
  }
  EXPECT_TRUE(OutputFile::open(path("other"), std::vector{input}));
}

TEST_F(OutputFileTest, AnOutputInAnInputFolderIsRefused) {
  fs::create_directories(path("parts/within"));
  const std::vector<std::string> inputs = {path("parts")};
  EXPECT_FALSE(OutputFile::open(path("parts/new"), inputs));
  EXPECT_FALSE(OutputFile::open(path("parts/within/new"), inputs));
  EXPECT_TRUE(OutputFile::open(path("new"), inputs));
}

TEST_F(OutputFileTest, TheTargetOfALinkIsReplaced) {
  fs::create_directory(path("elsewhere"));
  create_file("elsewhere/real", "old");
  fs::create_symlink("elsewhere/real", path("link"));
  fs::create_symlink("elsewhere/dangling", path("new"));
  ASSERT_TRUE(replace_file(path("link"), "text"));
  ASSERT_TRUE(replace_file(path("new"), "more"));
  EXPECT_TRUE(fs::is_symlink(path("link")) && fs::is_symlink(path("new")));
  EXPECT_EQ(read_content(path("elsewhere/real")), "text");
  EXPECT_EQ(read_content(path("elsewhere/dangling")), "more");
}

TEST_F(OutputFileTest, PipesAreWrittenDirectly) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  std::string received_text;
  std::thread reader(
      [&] { received_text = std::string(std::istreambuf_iterator<char>(std::ifstream(path("fifo")).rdbuf()), {}); });
  const Status write_status = replace_file(path("fifo"), "through");
  reader.join();
  ASSERT_TRUE(write_status);
  EXPECT_EQ(received_text, "through");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(OutputFileTest, OutputIsAppendedToAnOpenFileNamedByProcfs) {
  const FileDescriptor log(::open(create_file("log", "before\n").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  ASSERT_TRUE(replace_file("/dev/fd/" + std::to_string(log.get()), "after\n"));
  EXPECT_EQ(read_content(path("log")), "before\nafter\n");
}

TEST_F(OutputFileTest, AFullDeviceIsAnError) { EXPECT_FALSE(replace_file("/dev/full", "text")); }

TEST_F(OutputFileTest, AWriteThatFailsLeavesTheOlderFile) {
  const std::string older_path = create_file("older", "kept");
  rlimit original_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &original_limit), 0);
  const rlimit small_size_limit{1000, original_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small_size_limit), 0);
  const Status write_status = replace_file(older_path, std::string(5000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &original_limit), 0);
  EXPECT_FALSE(write_status);
  EXPECT_EQ(read_content(older_path), "kept");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(OutputFileTest, FoldersAreRefusedBeforeTheWorkStarts) {
  EXPECT_FALSE(OutputFile::open(directory_.path()));
  EXPECT_FALSE(OutputFile::open(path("missing/file")));
  EXPECT_FALSE(OutputFile::open(path("name/")));
}

}  // namespace
}  // namespace joulemap
