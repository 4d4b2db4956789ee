// SPDX-License-Identifier: Apache-2.0
//
// Tests which data a damaged recording loses: a small file truncated at every length, and with each byte flipped,
// removed or preceded by another. Also tests files that are not recordings, and files of newer versions: a newer minor
// version is read, a newer major version is an error.
#include <gtest/gtest.h>

#include <set>

#include "recording/chunk.h"
#include "recording/record_codec.h"
#include "recording/recording_reader.h"
#include "recording/sample_codec.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::recording {
namespace {

// A chunk of the file.
struct RecordedChunk {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::vector<std::uint64_t> raw_values;  // raw values of its samples, unique in the file
};

// A definition, a second of samples, a definition, more samples, the end: as written by RecordingWriter.
struct SmallRecording {
  std::string bytes;
  std::vector<RecordedChunk> pieces;

  SmallRecording() {
    for (std::int64_t second_index = 0; second_index < 4; ++second_index) {
      if (second_index < 2)
        append(make_chunk(ChunkType::source, 0, encode_source({make_recording_source(), make_recorded_channels(2)})),
               {});
      SampleBatch batch;
      RecordedChunk recorded_chunk;
      for (std::int64_t tick = 0; tick < 5; ++tick) {
        batch.samples.push_back(make_recorded_sample(static_cast<std::uint32_t>(tick % 2), second_index * 20 + tick));
        recorded_chunk.raw_values.push_back(batch.samples.back().reading.raw);
      }
      append(make_chunk(ChunkType::samples, 0, encode_samples(batch)), recorded_chunk.raw_values);
    }
    append(make_chunk(ChunkType::end, 0, encode_end({})), {});
  }

  void append(const std::string& chunk, std::vector<std::uint64_t> raw_values) {
    pieces.push_back({bytes.size(), bytes.size() + chunk.size(), std::move(raw_values)});
    bytes += chunk;
  }
  // The raw values of all pieces except those that overlap [begin, end).
  std::multiset<std::uint64_t> raw_values_outside(std::size_t begin, std::size_t end) const {
    std::multiset<std::uint64_t> raw_values;
    for (const RecordedChunk& recorded_chunk : pieces) {
      if (recorded_chunk.end <= begin || recorded_chunk.begin >= end)
        raw_values.insert(recorded_chunk.raw_values.begin(), recorded_chunk.raw_values.end());
    }
    return raw_values;
  }
};

struct DecodedSamples {
  Result<RecordingSummary> summary;
  std::multiset<std::uint64_t> raw_values;
};

DecodedSamples decode_recording(const std::string& bytes) {
  RecordingContents recording_contents;
  MemorySource source(bytes);
  DecodedSamples decoded_samples{read_recording(source, "small", recording_contents), {}};
  for (const Sample& sample : recording_contents.samples) decoded_samples.raw_values.insert(sample.reading.raw);
  return decoded_samples;
}

TEST(RecordingDamage, AFlippedByteDamagesOnlyItsChunk) {
  const SmallRecording file;
  for (std::size_t position = 0; position < file.bytes.size(); ++position) {
    for (const int flipped_bits : {0x01, 0x80, 0xFF}) {
      std::string damaged_bytes = file.bytes;
      damaged_bytes[position] = static_cast<char>(static_cast<unsigned char>(damaged_bytes[position]) ^ flipped_bits);
      const DecodedSamples decoded_samples = decode_recording(damaged_bytes);
      ASSERT_TRUE(decoded_samples.summary) << position << ": " << decoded_samples.summary.error().message;
      ASSERT_EQ(decoded_samples.raw_values, file.raw_values_outside(position, position + 1)) << position;
      ASSERT_EQ(decoded_samples.summary->damaged_ranges, 1u) << position;
      ASSERT_FALSE(decoded_samples.summary->diagnostics.empty()) << position;
    }
  }
}

TEST(RecordingDamage, ATruncationLosesOnlyTheDataAfterIt) {
  const SmallRecording file;
  for (std::size_t length = file.pieces[0].end; length < file.bytes.size(); ++length) {
    const DecodedSamples decoded_samples = decode_recording(file.bytes.substr(0, length));
    ASSERT_TRUE(decoded_samples.summary) << length;
    ASSERT_EQ(decoded_samples.raw_values, file.raw_values_outside(length, file.bytes.size())) << length;
    ASSERT_FALSE(decoded_samples.summary->all_sources_ended);
    ASSERT_TRUE(decoded_samples.summary->diagnostics.contains("recording_not_ended"));
  }
  for (std::size_t length = 0; length < file.pieces[0].end; ++length) {
    const DecodedSamples decoded_samples = decode_recording(file.bytes.substr(0, length));
    ASSERT_FALSE(decoded_samples.summary) << length;
    ASSERT_EQ(decoded_samples.summary.error().code, ErrorCode::malformed);
    ASSERT_FALSE(decoded_samples.summary.error().remedy.empty());
  }
}

TEST(RecordingDamage, ALostOrAddedByteDamagesOnlyItsChunk) {
  const SmallRecording file;
  for (std::size_t position = 0; position < file.bytes.size(); ++position) {
    std::string shortened_bytes = file.bytes;
    shortened_bytes.erase(position, 1);
    const DecodedSamples samples_after_removal = decode_recording(shortened_bytes);
    ASSERT_TRUE(samples_after_removal.summary) << position;
    ASSERT_EQ(samples_after_removal.raw_values, file.raw_values_outside(position, position + 1)) << position;
    std::string lengthened_bytes = file.bytes;
    lengthened_bytes.insert(position, 1, '\xB5');
    const DecodedSamples samples_after_insertion = decode_recording(lengthened_bytes);
    ASSERT_TRUE(samples_after_insertion.summary) << position;
    for (const std::uint64_t raw_value : file.raw_values_outside(position, position + 1))
      ASSERT_TRUE(samples_after_insertion.raw_values.contains(raw_value)) << position;
  }
}

TEST(RecordingDamage, ReportsTheMissingTime) {
  SmallRecording file;
  file.bytes[file.pieces[4].begin + kChunkHeaderSize] ^= 1;  // the third second of samples
  const DecodedSamples decoded_samples = decode_recording(file.bytes);
  ASSERT_TRUE(decoded_samples.summary);
  ASSERT_TRUE(decoded_samples.summary->diagnostics.contains("recording_damaged"));
  const std::string& message = decoded_samples.summary->diagnostics.list().at(0).message;
  EXPECT_NE(message.find("missing from 1.224 s to 3.024 s"), std::string::npos) << message;
}

TEST(RecordingDamage, LimitsMessagesForAHeavilyDamagedFile) {
  SmallRecording file;
  std::string bytes = file.bytes;
  for (int i = 0; i < 200; ++i) bytes += "rubbish" + file.bytes.substr(file.pieces.back().begin);
  const DecodedSamples decoded_samples = decode_recording(bytes);
  ASSERT_TRUE(decoded_samples.summary);
  EXPECT_EQ(decoded_samples.summary->damaged_ranges, 200u);
  EXPECT_LT(decoded_samples.summary->diagnostics.list().size(), 12u);
}

TEST(RecordingDamage, OtherContentIsAnErrorWithARemedy) {
  const TemporaryDirectory directory;
  RecordingContents recording_contents;
  const std::string empty_path = directory.write("empty.joule", "");
  const std::string text = directory.write("text.joule", std::string(200'000, 'a'));
  for (const std::string& path :
       {empty_path, text, directory.path(), directory.path() + "/missing", std::string("/dev/zero")}) {
    const Result<RecordingSummary> summary = read_recording(path, recording_contents);
    ASSERT_FALSE(summary) << path;
    EXPECT_NE(summary.error().message.find(path), std::string::npos);
    EXPECT_FALSE(summary.error().remedy.empty()) << path;
  }
}

std::string chunk_with_header(ChunkHeader header, const std::string& payload) {
  header.uncompressed_size = static_cast<std::uint32_t>(payload.size());
  return renumber_chunk_source(header, 0, payload);
}

TEST(RecordingVersion, ReadsANewerMinorAndCountsSkippedChunks) {
  SmallRecording file;
  file.append(chunk_with_header({.minor = 7, .type = 200}, "something new"), {});
  const DecodedSamples decoded_samples = decode_recording(file.bytes);
  ASSERT_TRUE(decoded_samples.summary);
  EXPECT_EQ(decoded_samples.raw_values, file.raw_values_outside(0, 0));
  EXPECT_EQ(decoded_samples.summary->minor, 7);
  EXPECT_EQ(decoded_samples.summary->chunks_skipped, 1u);
  EXPECT_TRUE(decoded_samples.summary->diagnostics.contains("chunks_skipped"));
}

TEST(RecordingVersion, IgnoresFieldsOfANewerMinor) {
  SmallRecording file;
  std::string extended_payload = encode_events({{Mark{7, MarkKind::epoch, 1, 2, "a"}}, {}});
  extended_payload[1] = static_cast<char>(extended_payload[1] + 3);  // length of the mark's record
  extended_payload.insert(extended_payload.size() - 1, "new");
  extended_payload += "a new list";
  file.append(chunk_with_header({.minor = 1, .type = 3}, extended_payload), {});
  RecordingContents recording_contents;
  MemorySource source(file.bytes);
  ASSERT_TRUE(read_recording(source, "small", recording_contents));
  ASSERT_EQ(recording_contents.marks.size(), 1u);
  EXPECT_EQ(recording_contents.marks[0].second.name, "a");
}

TEST(RecordingVersion, OmitsAndCountsKindsOfANewerMinor) {
  SmallRecording file;
  file.append(make_chunk(ChunkType::events, 0, encode_events({{Mark{7, static_cast<MarkKind>(99), 1, 2, "a"}}, {}})),
              {});
  std::vector<Channel> channels = make_recorded_channels(2);
  channels[0].quantity = static_cast<Quantity>(99);
  RecordingSource second_source = make_recording_source(12);
  file.append(make_chunk(ChunkType::source, 1, encode_source({second_source, channels})), {});
  SampleBatch batch;
  batch.samples = {make_recorded_sample(0, 100), make_recorded_sample(1, 100)};
  file.append(make_chunk(ChunkType::samples, 1, encode_samples(batch)), {});
  RecordingContents recording_contents;
  MemorySource source(file.bytes);
  const Result<RecordingSummary> summary = read_recording(source, "small", recording_contents);
  ASSERT_TRUE(summary);
  EXPECT_TRUE(recording_contents.marks.empty());
  EXPECT_TRUE(summary->diagnostics.contains("unknown_marks"));
  ASSERT_EQ(recording_contents.channels.size(), 3u);
  EXPECT_EQ(recording_contents.list_readings(2).size(), 1u);  // the only known channel of the second source
  EXPECT_TRUE(summary->diagnostics.contains("samples_of_unknown_channel"));
}

TEST(RecordingVersion, AnUnknownRequiredChunkIsAnErrorThatNamesTheVersion) {
  SmallRecording file;
  file.append(chunk_with_header({.minor = 3, .type = 200, .is_required = true}, "new"), {});
  const DecodedSamples decoded_samples = decode_recording(file.bytes);
  ASSERT_FALSE(decoded_samples.summary);
  EXPECT_EQ(decoded_samples.summary.error().code, ErrorCode::unsupported);
  EXPECT_NE(decoded_samples.summary.error().message.find("1.3"), std::string::npos);
  EXPECT_NE(decoded_samples.summary.error().remedy.find("update"), std::string::npos);
}

TEST(RecordingVersion, ANewerMajorIsAnErrorThatNamesTheVersion) {
  const std::string bytes = chunk_with_header({.major = 2, .minor = 1, .type = 1, .is_required = true}, "different");
  const DecodedSamples decoded_samples = decode_recording(bytes);
  ASSERT_FALSE(decoded_samples.summary);
  EXPECT_EQ(decoded_samples.summary.error().code, ErrorCode::unsupported);
  EXPECT_NE(decoded_samples.summary.error().message.find("2.1"), std::string::npos);
  EXPECT_NE(decoded_samples.summary.error().remedy.find("update"), std::string::npos);
}

TEST(RecordingDamage, HeadersThatClaimMegabytesCostNeitherMemoryNorTime) {
  ChunkHeader header;
  header.type = 2;
  header.stored_size = header.uncompressed_size = kMaxPayloadBytes;
  std::string bytes = SmallRecording().bytes;
  for (int i = 0; i < 20'000; ++i) bytes += encode_chunk_header(header);
  header.compressed = true;
  header.stored_size = 10;
  bytes += renumber_chunk_source(header, 0, "not a frame");
  const DecodedSamples decoded_samples =
      decode_recording(bytes);  // would take minutes if the payload of each header were checked
  ASSERT_TRUE(decoded_samples.summary);
  EXPECT_EQ(decoded_samples.raw_values, SmallRecording().raw_values_outside(0, 0));
  EXPECT_GT(decoded_samples.summary->damaged_bytes, 400'000u);
}

}  // namespace
}  // namespace joulemap::recording
