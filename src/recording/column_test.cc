// SPDX-License-Identifier: Apache-2.0
#include "recording/column.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "recording/rice.h"

namespace joulemap::recording {
namespace {

using ColumnValues = std::vector<std::uint64_t>;

std::string encode_values(const ColumnValues& values) {
  WireWriter out;
  encode_column(out, values);
  return std::move(out).take_bytes();
}

ColumnValues decode_values(const std::string& bytes, std::size_t count) {
  WireReader in(bytes);
  ColumnValues values = decode_column(in, count);
  EXPECT_TRUE(in.ok());
  EXPECT_TRUE(in.unread_bytes().empty());
  return values;
}

TEST(Column, RoundTripsExtremeValues) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::vector<ColumnValues> columns = {
      {}, {0}, {kMost}, {0, kMost}, {kMost, 0, kMost / 2, 1}, {kMost, kMost, kMost, kMost}};
  for (const ColumnValues& values : columns) EXPECT_EQ(decode_values(encode_values(values), values.size()), values);
}

TEST(Column, RoundTripsRandomWalksOfAnyWidth) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const unsigned step_shift_bits = static_cast<unsigned>(random() % 64);
    const std::uint64_t grid = std::uint64_t{1} << random() % 24;
    ColumnValues values;
    std::uint64_t value = random() >> random() % 64;
    for (std::size_t i = random() % 200; i > 0; --i)
      values.push_back((value += random() >> step_shift_bits) / grid * grid);
    ASSERT_EQ(decode_values(encode_values(values), values.size()), values);
  }
}

TEST(Column, StoresQuantizedCountersByTheirQuantum) {
  std::mt19937_64 random(1);
  ColumnValues microjoules;
  ColumnValues perf;
  ColumnValues quantum_counts;
  std::uint64_t quanta = 1'000'000;
  for (int i = 0; i < 100; ++i) {
    quanta += 40'000 + random() % 2048;
    microjoules.push_back(quanta * 61035 / 1000);
    perf.push_back(quanta << 18);
    quantum_counts.push_back(quanta);
  }
  const std::size_t encoded_quantum_counts_size = encode_values(quantum_counts).size();
  EXPECT_LE(encode_values(microjoules).size(), encoded_quantum_counts_size + 6);
  EXPECT_LE(encode_values(perf).size(), encoded_quantum_counts_size + 6);
  EXPECT_EQ(decode_values(encode_values(microjoules), 100), microjoules);
  EXPECT_EQ(decode_values(encode_values(perf), 100), perf);
}

TEST(Column, StoresAConstantValueInAboutABit) { EXPECT_LE(encode_values(ColumnValues(800, 65)).size(), 100u + 5u); }

TEST(Column, CutBytesFailTheReader) {
  const std::string bytes = encode_values({5, 1000, 70'000, 1'000'000, 3, 9});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    WireReader reader(std::string_view(bytes).substr(0, length));
    static_cast<void>(decode_column(reader, 6));
    EXPECT_FALSE(reader.ok()) << length;
  }
}

TEST(Column, AGridThatWouldOverflowFailsTheReader) {
  WireWriter out;
  out.write_u8(0x80 | 60);
  out.write_varint(std::numeric_limits<std::uint64_t>::max());
  out.write_varint(1);
  out.write_signed_varint(5);
  out.write_signed_varint(0);
  out.write_raw(std::string(16, '\0'));
  WireReader reader(out.bytes());
  static_cast<void>(decode_column(reader, 1));
  EXPECT_FALSE(reader.ok());
}

TEST(Rice, DoesNotAllocateForMoreValuesThanThereAreBits) {
  EXPECT_EQ(rice_decode("abc", 1'000'000'000, 0), std::nullopt);
}

}  // namespace
}  // namespace joulemap::recording
