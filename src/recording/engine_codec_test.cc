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
  EngineSteps engine_steps;
  for (std::uint32_t i = 0; i < batch; ++i)
    engine_steps.requests.push_back({i, fmt::format("r{}", i), "tenant", "model"});
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::int64_t begin_ns = 1'000'000'000 + std::int64_t{step} * 10'000'000 + step % 7 * 1000;
    engine_steps.steps.push_back({begin_ns, begin_ns + 9'500'000 + step % 5 * 777, batch});
    for (std::uint32_t i = 0; i < batch; ++i) engine_steps.entries.push_back({i, 0, 0, 1, 0, 100 * i + step, 0});
  }
  return engine_steps;
}

TEST(EngineCodec, StepsAreReadAsTheyWereWritten) {
  std::mt19937 generator(11);
  const auto random = [&generator] { return static_cast<std::uint32_t>(generator()); };
  for (int round = 0; round < 20; ++round) {
    EngineSteps engine_steps;
    engine_steps.requests.push_back({4'000'000'000u, "an id with \n", "", "m"});
    for (int i = 0; i < 30; ++i) {
      engine_steps.steps.push_back({std::int64_t{random()}, std::int64_t{random()}, random() % 5});
      for (std::uint32_t k = 0; k < engine_steps.steps.back().requests; ++k)
        engine_steps.entries.push_back(
            {random(), random() % 5000, 7, random() % 3, 1, random(), static_cast<std::uint8_t>(random() % 8)});
    }
    EngineSteps decoded_steps;
    for (const std::string& payload : encode_engine_steps(engine_steps)) {
      const std::optional<EngineSteps> part = decode_engine_steps(payload);
      ASSERT_TRUE(part);
      decoded_steps.requests.insert(decoded_steps.requests.end(), part->requests.begin(), part->requests.end());
      decoded_steps.steps.insert(decoded_steps.steps.end(), part->steps.begin(), part->steps.end());
      decoded_steps.entries.insert(decoded_steps.entries.end(), part->entries.begin(), part->entries.end());
    }
    EXPECT_EQ(format_engine_steps(decoded_steps), format_engine_steps(engine_steps));
  }
}

TEST(EngineCodec, ADecodeStepTakesAFewBytesOfAChunk) {
  const EngineSteps engine_steps = make_decode_steps(1000, 64);
  std::size_t bytes = 0;
  for (const std::string& payload : encode_engine_steps(engine_steps))
    bytes += make_chunk(ChunkType::engine_steps, 0, payload).size();
  EXPECT_LT(bytes, engine_steps.entries.size() / 4) << "bytes of " << engine_steps.entries.size() << " entries";
}

TEST(EngineCodec, LargeBatchesAreSplitIntoChunks) {
  const EngineSteps engine_steps = make_decode_steps(30, 20'000);
  const std::vector<std::string> payloads = encode_engine_steps(engine_steps);
  EXPECT_GT(payloads.size(), 3u);
  std::size_t entries = 0;
  for (const std::string& payload : payloads) {
    EXPECT_LE(payload.size(), kMaxPayloadBytes);
    entries += decode_engine_steps(payload)->entries.size();
  }
  EXPECT_EQ(entries, engine_steps.entries.size());
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
  const std::optional<EngineSteps> largest_step = decode_engine_steps(encode_one_step(kMaxRequests));
  ASSERT_TRUE(largest_step);
  EXPECT_EQ(encode_engine_steps(*largest_step).size(), 1u);  // what is read can be written
  EXPECT_FALSE(decode_engine_steps(encode_one_step(kMaxRequests + 1)));
}

// Each claimed request would take 100 bytes of memory.
TEST(EngineCodec, APayloadOfTooManyRequestsIsRejected) {
  const auto decode = [](std::size_t count) {
    WireWriter out;
    out.write_varint(count);
    for (std::size_t i = 0; i < count; ++i) out.write_text(std::string_view("\1\0\0\0", 4));  // number 1, no texts
    for (int list_index = 0; list_index < 2; ++list_index) out.write_varint(0);
    return decode_engine_steps(out.bytes());
  };
  EXPECT_TRUE(decode(100'000));
  EXPECT_FALSE(decode(200'000));
}

TEST(EngineCodec, ChangedBytesNeverGiveMoreEntriesThanBytes) {
  const std::string payload = encode_engine_steps(make_decode_steps(5, 4)).back();
  for (std::size_t position = 0; position < payload.size(); ++position) {
    for (const char flipped_bits : {'\x01', '\x80', '\xff'}) {
      std::string changed_payload = payload;
      changed_payload[position] = static_cast<char>(changed_payload[position] ^ flipped_bits);
      const std::optional<EngineSteps> decoded_steps = decode_engine_steps(changed_payload);
      EXPECT_LE(decoded_steps ? decoded_steps->entries.size() : 0, changed_payload.size());
    }
  }
}

}  // namespace
}  // namespace joulemap::recording
