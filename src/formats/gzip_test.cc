// SPDX-License-Identifier: Apache-2.0
#include "formats/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <string>

#include "support/temporary_directory.h"

namespace joulemap::formats {
namespace {

std::string compressed(const std::string& uncompressed_text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, uncompressed_text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(uncompressed_text.data()));
  stream.avail_in = static_cast<uInt>(uncompressed_text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Poorly compressible text, longer than all buffers.
std::string make_incompressible_text() {
  std::string text;
  for (std::uint32_t i = 0, state = 1; i < 200'000; ++i) {
    state = state * 1664525 + 1013904223;
    text += std::to_string(state >> 8) + (i % 10 == 0 ? "\n" : ",");
  }
  return text;
}

struct ReadResult {
  std::string text;
  StreamState end = StreamState::reading;
  bool is_compressed = false;
};

ReadResult read(const std::string& bytes, std::size_t block_size = 100'000) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/file";
  std::ofstream(path, std::ios::binary) << bytes;
  Result<MaybeGzipFile> file = MaybeGzipFile::open(path);
  EXPECT_TRUE(file.has_value());
  ReadResult result{.is_compressed = file->is_compressed()};
  std::string buffer(block_size, '\0');
  while (true) {
    const Result<std::size_t> read_size = file->read({buffer.data(), buffer.size()});
    EXPECT_TRUE(read_size.has_value());
    if (*read_size == 0) break;
    result.text.append(buffer, 0, *read_size);
  }
  result.end = file->stream_state();
  return result;
}

TEST(MaybeGzipFile, AGzipFileIsRecognizedByItsContent) {
  const std::string text = make_incompressible_text();
  const ReadResult plain_result = read(text);
  EXPECT_FALSE(plain_result.is_compressed);
  EXPECT_TRUE(plain_result.text == text);
  EXPECT_EQ(plain_result.end, StreamState::complete);
  const ReadResult compressed_result = read(compressed(text));
  EXPECT_TRUE(compressed_result.is_compressed);
  EXPECT_TRUE(compressed_result.text == text);
  EXPECT_EQ(compressed_result.end, StreamState::complete);
}

TEST(MaybeGzipFile, BlocksOfAnySizeGiveTheSameText) {
  const std::string text = make_incompressible_text().substr(0, 50'000);
  for (const std::size_t block_size : {1u, 7u, 4096u, 50'000u, 50'001u, 1'000'000u}) {
    EXPECT_TRUE(read(text, block_size).text == text) << block_size;
    EXPECT_TRUE(read(compressed(text), block_size).text == text) << block_size;
  }
}

TEST(MaybeGzipFile, SeveralMembersAreOneText) {
  const std::string text = make_incompressible_text();
  const ReadResult joined_result =
      read(compressed(text) + compressed("and ") + compressed("more") + std::string(10, '\0'));
  EXPECT_TRUE(joined_result.text == text + "and more");
  EXPECT_EQ(joined_result.end, StreamState::complete);
}

TEST(MaybeGzipFile, ATruncatedStreamGivesItsContent) {
  const std::string text = make_incompressible_text();
  const std::string compressed_text = compressed(text);
  for (const std::size_t size :
       {compressed_text.size() - 1, compressed_text.size() - 8, compressed_text.size() / 2, std::size_t{300'000}}) {
    const ReadResult truncated = read(compressed_text.substr(0, size));
    EXPECT_EQ(truncated.end, StreamState::truncated) << size;
    EXPECT_TRUE(text.starts_with(truncated.text)) << size;
    EXPECT_GT(truncated.text.size(), size) << size;
  }
  EXPECT_EQ(read(compressed_text.substr(0, 5)).end, StreamState::truncated);
}

TEST(MaybeGzipFile, ReportsDamage) {
  const std::string text = make_incompressible_text();
  std::string bytes = compressed(text);
  bytes[bytes.size() - 6] ^= 1;  // a byte of the checksum
  const ReadResult damaged_result = read(bytes);
  EXPECT_EQ(damaged_result.end, StreamState::damaged);
  EXPECT_TRUE(damaged_result.text == text);
  std::string damaged_bytes = compressed(text);
  for (std::size_t i = 0; i < 64; ++i) damaged_bytes[damaged_bytes.size() / 2 + i] = '\xff';
  EXPECT_EQ(read(damaged_bytes).end, StreamState::damaged);
}

TEST(MaybeGzipFile, AMissingFileIsAnError) {
  EXPECT_EQ(MaybeGzipFile::open("/no/such/file").error().code, ErrorCode::not_found);
  EXPECT_EQ(read("").end, StreamState::complete);
}

}  // namespace
}  // namespace joulemap::formats
