// SPDX-License-Identifier: Apache-2.0
#include "formats/protobuf.h"

#include <gtest/gtest.h>

namespace joulemap::formats {
namespace {

TEST(Protobuf, ReadsBackWhatWasWritten) {
  ProtobufWriter written;
  written.add(1, std::int64_t{-7}).add(2, 0.5).add(3, "name").add(4, ProtobufWriter().add(1, 9));
  ProtobufReader fields(written.bytes());
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.field(), 1u);
  EXPECT_EQ(fields.signed_number(), -7);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.real(), 0.5);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.bytes(), "name");
  ASSERT_TRUE(fields.next());
  ProtobufReader inner(fields.bytes());
  ASSERT_TRUE(inner.next());
  EXPECT_EQ(inner.unsigned_number(), 9u);
  EXPECT_FALSE(fields.next());
  EXPECT_FALSE(fields.damaged());
}

TEST(Protobuf, AFieldOfAnotherTypeReadsAsNothing) {
  const ProtobufWriter written = ProtobufWriter().add(1, "text");
  ProtobufReader fields(written.bytes());
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.signed_number(), 0);
  EXPECT_EQ(fields.real(), 0);
}

TEST(Protobuf, SaysSoWhereTheBytesMakeNoSense) {
  const ProtobufWriter written = ProtobufWriter().add(1, 5).add(2, "a text that is cut");
  ProtobufReader fields(std::string_view(written.bytes()).substr(0, 8));
  EXPECT_TRUE(fields.next());
  EXPECT_FALSE(fields.next());
  EXPECT_TRUE(fields.damaged());
  EXPECT_FALSE(fields.next());
}

TEST(Protobuf, PackedNumbersAreReadUntilTheyAreCut) {
  EXPECT_EQ(packed_numbers("\x05\xac\x02"), (std::vector<std::uint64_t>{5, 300}));
  EXPECT_EQ(packed_numbers("\x05\xac"), (std::vector<std::uint64_t>{5}));
}

TEST(Protobuf, AnEmptyMessageIsWhole) {
  ProtobufReader fields("");
  EXPECT_FALSE(fields.next());
  EXPECT_FALSE(fields.damaged());
}

TEST(Protobuf, OfAFieldThatTheEndCutsItsBeginningIsTold) {
  const std::string bytes = ProtobufWriter().add(1, 7).add(2, "hello").bytes();
  ProtobufReader whole(bytes);
  while (whole.next()) EXPECT_TRUE(whole.cut().empty());
  EXPECT_TRUE(whole.cut().empty());
  ProtobufReader cut(std::string_view(bytes).substr(0, bytes.size() - 2));
  EXPECT_TRUE(cut.next());
  EXPECT_FALSE(cut.next());
  EXPECT_TRUE(cut.damaged());
  EXPECT_EQ(cut.field(), 2u);
  EXPECT_EQ(cut.cut(), "hel");
}

}  // namespace
}  // namespace joulemap::formats
