// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord.h"

#include <gtest/gtest.h>

namespace joulemap::formats {
namespace {

TEST(Tfrecord, TheChecksumIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);            // the check value of the CRC catalogue
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Tfrecord, ARecordHasLengthBytesAndAChecksumOfEach) {
  std::string file;
  append_tfrecord(file, "abc");
  append_tfrecord(file, "");
  ASSERT_EQ(file.size(), 2 * (8 + 4 + 4) + 3u);
  EXPECT_EQ(file.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(file.substr(12, 3), "abc");
  EXPECT_EQ(file.substr(19, 8), std::string(8, '\0'));
}

}  // namespace
}  // namespace joulemap::formats
