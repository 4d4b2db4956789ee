// SPDX-License-Identifier: Apache-2.0
#include "formats/tar.h"

#include <gtest/gtest.h>

#include <string>

namespace joulemap::formats {
namespace {

constexpr std::size_t kTarBlock_bytes = 512;

std::string small_archive() {
  const std::vector<TarMember> members = {{"a.json", "{}"}, {"folder/b.joule", std::string_view("\0\1\2", 3)}};
  return write_tar(members);
}

// Replaces text in a header and corrects its checksum, as an attacker would.
std::string replace_in_header(std::string archive, std::size_t offset, std::string_view text) {
  archive.replace(offset, text.size(), text);
  const std::size_t begin = offset / kTarBlock_bytes * kTarBlock_bytes;
  archive.replace(begin + 148, 8, 8, ' ');
  unsigned sum = 0;
  for (std::size_t i = begin; i < begin + kTarBlock_bytes; ++i) sum += static_cast<unsigned char>(archive[i]);
  char digits[8] = {};
  std::snprintf(digits, sizeof digits, "%06o", sum);
  return archive.replace(begin + 148, 7, std::string(digits, 7));
}

std::string tar_error_message(const std::string& archive) {
  const Result<std::vector<TarMember>> members = read_tar(archive);
  return members ? "" : members.error().message;
}

TEST(Tar, ReturnsTheMembersThatWereWritten) {
  const std::string archive = small_archive();
  const Result<std::vector<TarMember>> members = read_tar(archive);
  ASSERT_TRUE(members) << members.error().message;
  ASSERT_EQ(members->size(), 2U);
  EXPECT_EQ(members->at(0).name, "a.json");
  EXPECT_EQ(members->at(1).content, std::string_view("\0\1\2", 3));
  EXPECT_EQ(archive.size(), 6 * kTarBlock_bytes);
  EXPECT_TRUE(read_tar(write_tar({}))->empty());
}

TEST(Tar, RefusesNamesThatLeaveTheFolder) {
  for (const std::string_view name : {"/etc/passwd", "../x", "a/../b", "a//b", "a/", ".", "a b", "a\\b", ""})
    EXPECT_FALSE(is_tar_name(name)) << name;
  EXPECT_FALSE(is_tar_name(std::string(101, 'a')));
  EXPECT_TRUE(is_tar_name("recordings/run-1_2.joule"));
  for (const std::string_view name : {"../son", "/.json", "a\nb.js"})
    EXPECT_NE(tar_error_message(replace_in_header(small_archive(), 0, name)).find("not allowed"), std::string::npos)
        << name;
}

TEST(Tar, RefusesLinksAndDevices) {
  for (const std::string_view type : {"1", "2", "3", "4", "5", "6", "7", "L", "x", "g"})
    EXPECT_NE(tar_error_message(replace_in_header(small_archive(), 156, type)).find("regular file"), std::string::npos)
        << type;
}

TEST(Tar, RefusesSizesBeyondTheEndAndOddNumbers) {
  EXPECT_NE(tar_error_message(replace_in_header(small_archive(), 124, "77777777777")).find("cut off"),
            std::string::npos);
  EXPECT_NE(tar_error_message(replace_in_header(small_archive(), 124, "00000005001")).find("cut off"),
            std::string::npos);
  EXPECT_NE(tar_error_message(replace_in_header(small_archive(), 124, "0000000000x")).find("damaged"),
            std::string::npos);
  EXPECT_NE(tar_error_message(replace_in_header(small_archive(), 124, "\x80")).find("damaged"), std::string::npos)
      << "base 256";
}

TEST(Tar, RefusesANameThatOccursTwice) {
  const std::vector<TarMember> members = {{"a", "1"}, {"b", "2"}};
  EXPECT_NE(tar_error_message(replace_in_header(write_tar(members), 2 * kTarBlock_bytes, "a")).find("twice"),
            std::string::npos);
}

TEST(Tar, RefusesEveryTruncationAndEveryChangedByteOutsideOfContents) {
  const std::string archive = small_archive();
  for (std::size_t size = 0; size < archive.size(); ++size)
    EXPECT_NE(tar_error_message(archive.substr(0, size)), "") << size;
  EXPECT_NE(tar_error_message(archive + std::string(kTarBlock_bytes, '\0')), "");
  for (std::size_t offset = 0; offset < archive.size(); ++offset) {
    const bool is_content = (offset >= kTarBlock_bytes && offset < kTarBlock_bytes + 2) ||
                            (offset >= 3 * kTarBlock_bytes && offset < 3 * kTarBlock_bytes + 3);
    std::string changed_archive = archive;
    changed_archive[offset] = static_cast<char>(changed_archive[offset] ^ 1);
    const Result<std::vector<TarMember>> members = read_tar(changed_archive);
    // A changed letter of a name does not match the checksum of its header.
    EXPECT_EQ(members.has_value(), is_content) << offset;
  }
}

}  // namespace
}  // namespace joulemap::formats
