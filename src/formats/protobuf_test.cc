// SPDX-License-Identifier: Apache-2.0
#include "formats/protobuf.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace joulemap::formats {
namespace {

TEST(Protobuf, RoundTripsItsOutput) {
  ProtobufWriter message;
  message.add(1, std::int64_t{-7}).add(2, 0.5).add(3, "name").add(4, ProtobufWriter().add(1, 9));
  ProtobufReader fields(message.bytes());
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.field(), 1u);
  EXPECT_EQ(fields.signed_number(), -7);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.double_value(), 0.5);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.bytes(), "name");
  ASSERT_TRUE(fields.next());
  ProtobufReader nested_fields(fields.bytes());
  ASSERT_TRUE(nested_fields.next());
  EXPECT_EQ(nested_fields.unsigned_number(), 9u);
  EXPECT_FALSE(fields.next());
  EXPECT_FALSE(fields.damaged());
}

TEST(Protobuf, AFieldOfAnotherTypeReadsAsEmpty) {
  const ProtobufWriter message = ProtobufWriter().add(1, "text");
  ProtobufReader fields(message.bytes());
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.signed_number(), 0);
  EXPECT_EQ(fields.double_value(), 0);
}

TEST(Protobuf, ReportsInvalidBytes) {
  const ProtobufWriter message = ProtobufWriter().add(1, 5).add(2, "a text that is cut");
  ProtobufReader fields(std::string_view(message.bytes()).substr(0, 8));
  EXPECT_TRUE(fields.next());
  EXPECT_FALSE(fields.next());
  EXPECT_TRUE(fields.damaged());
  EXPECT_FALSE(fields.next());
}

TEST(Protobuf, ReadsPackedNumbersUpToTheCut) {
  EXPECT_EQ(decode_packed_varints("\x05\xac\x02"), (std::vector<std::uint64_t>{5, 300}));
  EXPECT_EQ(decode_packed_varints("\x05\xac"), (std::vector<std::uint64_t>{5}));
}

TEST(Protobuf, AnEmptyMessageIsComplete) {
  ProtobufReader fields("");
  EXPECT_FALSE(fields.next());
  EXPECT_FALSE(fields.damaged());
}

TEST(Protobuf, ReturnsTheBytesOfATruncatedField) {
  const std::string bytes = ProtobufWriter().add(1, 7).add(2, "hello").bytes();
  ProtobufReader whole(bytes);
  while (whole.next()) EXPECT_TRUE(whole.truncated_field().empty());
  EXPECT_TRUE(whole.truncated_field().empty());
  ProtobufReader truncated_field(std::string_view(bytes).substr(0, bytes.size() - 2));
  EXPECT_TRUE(truncated_field.next());
  EXPECT_FALSE(truncated_field.next());
  EXPECT_TRUE(truncated_field.damaged());
  EXPECT_EQ(truncated_field.field(), 2u);
  EXPECT_EQ(truncated_field.truncated_field(), "hel");
}

TEST(Protobuf, FastAndBytewiseVarintReadsAgree) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(16, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const std::size_t continuation_byte_count = random() % 12;  // makes most numbers longer than a byte
    for (std::size_t byte_index = 0; byte_index < continuation_byte_count; ++byte_index)
      bytes[byte_index] = static_cast<char>(bytes[byte_index] | 0x80);
    const char* const begin = bytes.data();
    const char* const end = begin + random() % 13;
    std::uint64_t bytewise_value = 0;
    std::uint64_t fast_value = 0;
    const char* const varint_end = decode_varint_bytewise(begin, end, bytewise_value);
    EXPECT_EQ(decode_varint(begin, end, begin + bytes.size(), fast_value), varint_end) << i;
    if (varint_end != nullptr) {
      EXPECT_EQ(fast_value, bytewise_value) << i;
    }
    EXPECT_EQ(decode_varint(begin, end, end, fast_value), varint_end) << i;
  }
}

TEST(Protobuf, ReadsFloatsAndRecognizesByteFields) {
  ProtobufWriter writer;
  writer.add(1, 0.5F).add(2, "bytes").add(3, 7);
  ProtobufReader message(writer.bytes());
  ASSERT_TRUE(message.next());
  EXPECT_EQ(message.float_value(), 0.5F);
  EXPECT_FALSE(message.is_bytes());
  ASSERT_TRUE(message.next());
  EXPECT_TRUE(message.is_bytes());
  EXPECT_EQ(message.float_value(), 0);
  ASSERT_TRUE(message.next());
  EXPECT_FALSE(message.is_bytes());
  EXPECT_FALSE(message.next());
  EXPECT_FALSE(message.damaged());
}

}  // namespace
}  // namespace joulemap::formats
