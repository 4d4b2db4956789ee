// SPDX-License-Identifier: Apache-2.0
#include "base/small_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace joulemap {
namespace {

TEST(SmallFile, ReadsAllOfAFile) {
  const TemporaryDirectory directory;
  EXPECT_EQ(read_small_file(directory.write("name", "package-0\n")).value(), "package-0\n");
}

TEST(SmallFile, NamesThePathInEveryError) {
  const TemporaryDirectory directory;
  const Result<std::string> missing_file = read_small_file(directory.path() + "/missing");
  ASSERT_FALSE(missing_file.has_value());
  EXPECT_EQ(missing_file.error().code, ErrorCode::not_found);
  EXPECT_NE(missing_file.error().message.find(directory.path() + "/missing"), std::string::npos);

  const Result<std::string> folder = read_small_file(directory.path());
  ASSERT_FALSE(folder.has_value());
  EXPECT_NE(folder.error().message.find("Is a directory"), std::string::npos);
}

TEST(SmallFile, RefusesAFileThatIsNotSmall) {
  const TemporaryDirectory directory;
  const Result<std::string> large_file = read_small_file(directory.write("large", std::string(3 << 20, 'x')));
  ASSERT_FALSE(large_file.has_value());
  EXPECT_EQ(large_file.error().code, ErrorCode::malformed);
}

TEST(ListDirectory, SortsNumbersInsideNamesAsNumbers) {
  const TemporaryDirectory directory;
  for (const char* name : {"zone:10", "zone:2", "zone:2:0", "alpha"}) directory.write(name, "");
  EXPECT_EQ(list_directory(directory.path()).value(),
            (std::vector<std::string>{"alpha", "zone:2", "zone:2:0", "zone:10"}));
}

TEST(FileBeneath, AFileBeneathAFolderIsReadWithoutFollowingALink) {
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path() + "/folder/sub");
  directory.write("outside", "secret");
  directory.write("folder/sub/inside", "ours");
  const std::string folder = directory.path() + "/folder";
  std::filesystem::create_symlink("../../outside", folder + "/sub/link");
  std::filesystem::create_directory_symlink("..", folder + "/up");
  EXPECT_EQ(read_file_beneath(folder, "sub/inside", 100).value(), "ours");
  EXPECT_EQ(read_file_beneath(folder, "./sub//inside", 2).value(), "ou");
  EXPECT_FALSE(read_file_beneath(folder, "sub/link", 100));
  EXPECT_FALSE(read_file_beneath(folder, "up/outside", 100));
  EXPECT_FALSE(read_file_beneath(folder, "sub", 100));
  EXPECT_EQ(read_file_beneath(folder, "missing", 100).error().code, ErrorCode::not_found);
}

TEST(FileBeneath, HasARelativePathWithoutTheFolderAbove) {
  for (const char* path : {"a", "a/b.json", "./a", "a//b", "..a", "a..b"})
    EXPECT_TRUE(is_relative_path_without_parent(path)) << path;
  for (const char* path : {"", "/a", "..", "../a", "a/../b", "a/.."})
    EXPECT_FALSE(is_relative_path_without_parent(path)) << path;
}

}  // namespace
}  // namespace joulemap
