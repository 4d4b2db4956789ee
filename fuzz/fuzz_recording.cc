// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes recordings. The first byte selects how the rest is used:
//   0  as a file: reading it is safe for any contents
//   1  as payloads with valid checksums: the decoders get input that no checksum rejects
//   2  as changes to a valid file: every sample read is one that was written, and unchanged chunks are read completely
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "recording/chunk.h"
#include "recording/record_codec.h"
#include "recording/recording_reader.h"
#include "recording/sample_codec.h"

namespace {

using namespace joulemap;
using namespace joulemap::recording;

using Key = std::tuple<std::uint32_t, std::int64_t, std::int64_t, std::uint64_t>;
Key make_sample_key(const Sample& sample) {
  return {sample.channel, sample.reading.before_ns, sample.reading.after_ns, sample.reading.raw};
}

class InputBytes {
 public:
  InputBytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  std::uint8_t next() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  std::uint32_t next_u24() { return static_cast<std::uint32_t>(next() | next() << 8 | next() << 16); }
  std::string remaining_bytes() { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

struct SampleKeyCollector final : RecordingVisitor {
  std::set<Key> samples;
  void on_samples(std::uint32_t, std::span<const Sample> some) override {
    for (const Sample& sample : some) samples.insert(make_sample_key(sample));
  }
};

SourceDefinition make_source_definition() {
  SourceDefinition definition;
  definition.source.recording_id = "fuzz";
  definition.channels.resize(3);
  for (std::size_t i = 0; i < 3; ++i) definition.channels[i].name = std::string(1, static_cast<char>('a' + i));
  return definition;
}

void read_fuzzed_recording(const std::string& file, RecordingVisitor& visitor) {
  MemorySource bytes(file);
  static_cast<void>(read_recording(bytes, "fuzzed", visitor));
}

void read_payloads(InputBytes bytes) {
  std::string file = make_chunk(ChunkType::source, 0, encode_source(make_source_definition()));
  while (!bytes.empty()) {
    const auto type = static_cast<ChunkType>(bytes.next() % 10);
    std::string payload;
    for (std::size_t left = bytes.next(); left > 0 && !bytes.empty(); --left)
      payload.push_back(static_cast<char>(bytes.next()));
    file += make_chunk(type, static_cast<std::uint16_t>(payload.size() % 2), payload);
  }
  SampleKeyCollector collector;
  read_fuzzed_recording(file, collector);
}

struct WrittenChunk {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::vector<Sample> samples;  // empty for a source definition
  bool is_changed = false;
};

std::vector<Sample> make_samples(InputBytes& bytes, std::int64_t& now_ns) {
  std::vector<Sample> samples;
  for (int i = bytes.next() % 16; i >= 0; --i) {
    now_ns += std::int64_t{512} * (1 + bytes.next());
    samples.push_back({bytes.next() % 3u, {bytes.next_u24(), now_ns, now_ns + 512, ReadCode::ok}});
  }
  return samples;
}

void check_changed_recording(InputBytes bytes) {
  std::string file;
  std::vector<WrittenChunk> pieces;
  const auto append = [&](const std::string& chunk, std::vector<Sample> samples) {
    pieces.push_back({file.size(), file.size() + chunk.size(), std::move(samples)});
    file += chunk;
  };
  std::int64_t now_ns = 0;
  for (int i = bytes.next() % 4; i >= 0; --i) {
    append(make_chunk(ChunkType::source, 0, encode_source(make_source_definition())), {});
    SampleBatch batch;
    batch.samples = make_samples(bytes, now_ns);
    append(make_chunk(ChunkType::samples, 0, encode_samples(batch)), batch.samples);
  }
  while (!bytes.empty()) {
    const std::size_t at = bytes.next_u24() % file.size();
    const std::uint8_t flip = bytes.next();
    file[at] = static_cast<char>(static_cast<std::uint8_t>(file[at]) ^ flip);
    for (WrittenChunk& piece : pieces)
      piece.is_changed = piece.is_changed || (flip != 0 && at >= piece.begin && at < piece.end);
  }
  SampleKeyCollector collector;
  read_fuzzed_recording(file, collector);

  std::set<Key> written;
  bool is_defined = false;
  for (const WrittenChunk& piece : pieces) {
    is_defined = is_defined || (piece.samples.empty() && !piece.is_changed);
    for (const Sample& sample : piece.samples) written.insert(make_sample_key(sample));
  }
  for (const Key& key : collector.samples) JOULEMAP_CHECK(written.contains(key), "a sample that nobody wrote");
  for (const WrittenChunk& piece : pieces) {
    for (const Sample& sample : piece.samples) {
      const bool is_expected = is_defined && !piece.is_changed;
      JOULEMAP_CHECK(!is_expected || collector.samples.contains(make_sample_key(sample)),
                     "an untouched sample was lost");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  InputBytes bytes(data, size);
  const int mode = bytes.next() % 3;
  if (mode == 0) {
    SampleKeyCollector collector;
    read_fuzzed_recording(bytes.remaining_bytes(), collector);
  } else if (mode == 1) {
    read_payloads(bytes);
  } else {
    check_changed_recording(bytes);
  }
  return 0;
}
