// SPDX-License-Identifier: Apache-2.0
#include "recording/engine_codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "recording/chunk.h"
#include "recording/column.h"
#include "recording/wire.h"

namespace joulemap::recording {
namespace {

std::string format_engine_steps(const EngineSteps& steps) {
  std::string text;
  for (const EngineRequest& it : steps.requests)
    text += fmt::format("{} {} {} {}\n", it.number, it.id, it.tenant, it.model);
  for (const EngineStep& it : steps.steps) text += fmt::format("{} {} {}\n", it.begin_ns, it.end_ns, it.requests);
  for (const StepRequest& it : steps.entries)
    text += fmt::format("{} {} {} {} {} {} {}\n", it.request, it.prompt_tokens, it.cached_tokens, it.decoded_tokens,
                        it.rejected_tokens, it.context_tokens, it.events);
  return text;
}

// `steps` decode steps of `batch` requests each.
EngineSteps make_decode_steps(std::uint32_t steps, std::uint32_t batch) {
  EngineSteps made;
  for (std::uint32_t i = 0; i < batch; ++i) made.requests.push_back({i, fmt::format("r{}", i), "tenant", "model"});
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::int64_t begin_ns = 1'000'000'000 + std::int64_t{step} * 10'000'000 + step % 7 * 1000;
    made.steps.push_back({begin_ns, begin_ns + 9'500'000 + step % 5 * 777, batch});
    for (std::uint32_t i = 0; i < batch; ++i) made.entries.push_back({i, 0, 0, 1, 0, 100 * i + step, 0});
  }
  return made;
}

TEST(EngineCodec, StepsAreReadAsTheyWereWritten) {
  std::mt19937 generator(11);
  const auto random = [&generator] { return static_cast<std::uint32_t>(generator()); };
  for (int round = 0; round < 20; ++round) {
    EngineSteps made;
    made.requests.push_back({4'000'000'000u, "an id with \n", "", "m"});
    for (int i = 0; i < 30; ++i) {
      made.steps.push_back({std::int64_t{random()}, std::int64_t{random()}, random() % 5});
      for (std::uint32_t k = 0; k < made.steps.back().requests; ++k)
        made.entries.push_back(
            {random(), random() % 5000, 7, random() % 3, 1, random(), static_cast<std::uint8_t>(random() % 8)});
    }
    EngineSteps read;
    for (const std::string& payload : encode_engine_steps(made)) {
      const std::optional<EngineSteps> part = decode_engine_steps(payload);
      ASSERT_TRUE(part);
      read.requests.insert(read.requests.end(), part->requests.begin(), part->requests.end());
      read.steps.insert(read.steps.end(), part->steps.begin(), part->steps.end());
      read.entries.insert(read.entries.end(), part->entries.begin(), part->entries.end());
    }
    EXPECT_EQ(format_engine_steps(read), format_engine_steps(made));
  }
}

TEST(EngineCodec, ADecodeStepTakesAFewBytesOfAChunk) {
  const EngineSteps made = make_decode_steps(1000, 64);
  std::size_t bytes = 0;
  for (const std::string& payload : encode_engine_steps(made))
    bytes += make_chunk(ChunkType::engine_steps, 0, payload).size();
  EXPECT_LT(bytes, made.entries.size() / 4) << "bytes of " << made.entries.size() << " entries";
}

TEST(EngineCodec, LargeBatchesAreSplitIntoChunks) {
  const EngineSteps made = make_decode_steps(30, 20'000);
  const std::vector<std::string> payloads = encode_engine_steps(made);
  EXPECT_GT(payloads.size(), 3u);
  std::size_t entries = 0;
  for (const std::string& payload : payloads) {
    EXPECT_LE(payload.size(), kMaxPayloadBytes);
    entries += decode_engine_steps(payload)->entries.size();
  }
  EXPECT_EQ(entries, made.entries.size());
}

TEST(EngineCodec, ATruncatedPayloadIsRejected) {
  const std::string payload = encode_engine_steps(make_decode_steps(3, 2)).back();
  for (std::size_t size = 0; size < payload.size(); ++size)
    EXPECT_FALSE(decode_engine_steps(payload.substr(0, size))) << size;
}

// One step of `count` entries that did nothing.
std::string encode_one_step(std::uint32_t count) {
  WireWriter out;
  out.write_varint(0);
  out.write_varint(1);
  for (const std::uint64_t time_ns : {1000, 10}) encode_column(out, std::vector<std::uint64_t>{time_ns});
  out.write_varint(count);
  out.write_varint(count);
  constexpr std::size_t kFieldsPerEntry = 7;
  out.write_raw(std::string(kFieldsPerEntry * count, '\0'));
  return std::move(out).take_bytes();
}

TEST(EngineCodec, AStepOfTooManyRequestsIsRejected) {
  constexpr auto kMaxRequests = static_cast<std::uint32_t>(kMaxRequestsPerStep);
  const std::optional<EngineSteps> largest = decode_engine_steps(encode_one_step(kMaxRequests));
  ASSERT_TRUE(largest);
  EXPECT_EQ(encode_engine_steps(*largest).size(), 1u);  // what is read can be written
  EXPECT_FALSE(decode_engine_steps(encode_one_step(kMaxRequests + 1)));
}

// Each claimed request would take 100 bytes of memory.
TEST(EngineCodec, APayloadOfTooManyRequestsIsRejected) {
  const auto decode = [](std::size_t count) {
    WireWriter out;
    out.write_varint(count);
    for (std::size_t i = 0; i < count; ++i) out.write_text(std::string_view("\1\0\0\0", 4));  // number 1, no texts
    for (int list = 0; list < 2; ++list) out.write_varint(0);
    return decode_engine_steps(out.bytes());
  };
  EXPECT_TRUE(decode(100'000));
  EXPECT_FALSE(decode(200'000));
}

TEST(EngineCodec, ChangedBytesNeverGiveMoreEntriesThanBytes) {
  const std::string payload = encode_engine_steps(make_decode_steps(5, 4)).back();
  for (std::size_t at = 0; at < payload.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string changed = payload;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const std::optional<EngineSteps> read = decode_engine_steps(changed);
      EXPECT_LE(read ? read->entries.size() : 0, changed.size());
    }
  }
}

}  // namespace
}  // namespace joulemap::recording
