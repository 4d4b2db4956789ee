// SPDX-License-Identifier: Apache-2.0
#include "formats/sha256.h"

#include <gtest/gtest.h>

namespace joulemap::formats {
namespace {

// Examples of NIST for FIPS 180-4 (csrc.nist.gov, Cryptographic Standards and Guidelines, SHA256.pdf) and the empty
// message of the SHA test vectors for byte-oriented messages (SHA256ShortMsg.rsp).
TEST(Sha256, MatchesTheVectorsOfNist) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DependsOnEveryByteAcrossBlocks) {
  std::string text(200, 'x');
  const std::string original_digest = sha256_hex(text);
  for (char& byte : text) {
    byte = 'y';
    EXPECT_NE(sha256_hex(text), original_digest);
    byte = 'x';
  }
}

}  // namespace
}  // namespace joulemap::formats
