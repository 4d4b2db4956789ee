// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "formats/crc32.h"
#include "formats/zstd.h"

namespace joulemap::formats {
namespace {

TEST(Zstd, RoundTripsItsInput) {
  for (const std::string& uncompressed_text : {std::string(), std::string("joule"), std::string(100'000, 'x')}) {
    EXPECT_EQ(zstd_decompress(zstd_compress(uncompressed_text), uncompressed_text.size()), uncompressed_text);
  }
}

TEST(Zstd, RefusesAWrongSizeAndInvalidFrames) {
  const std::string compressed = zstd_compress("joule");
  EXPECT_EQ(zstd_decompress(compressed, 4), std::nullopt);
  EXPECT_EQ(zstd_decompress(compressed, 6), std::nullopt);
  EXPECT_EQ(zstd_decompress("no frame", 8), std::nullopt);
}

TEST(Crc32, MatchesZlib) { EXPECT_EQ(crc32("123456789"), 0xCBF43926u); }  // the check value of the CRC-32 definition

}  // namespace
}  // namespace joulemap::formats
