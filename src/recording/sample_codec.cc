// SPDX-License-Identifier: Apache-2.0
#include "recording/sample_codec.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "recording/column.h"

namespace joulemap::recording {
namespace {

using Column = std::vector<std::uint64_t>;

// Unsigned, because arithmetic is modulo 2^64: even an invalid time must round-trip.
std::uint64_t units_down(std::int64_t time_ns, unsigned shift) { return static_cast<std::uint64_t>(time_ns >> shift); }
std::uint64_t units_up(std::int64_t time_ns, unsigned shift) {
  const std::int64_t below_unit = (std::int64_t{1} << shift) - 1;
  return units_down(time_ns, shift) + ((time_ns & below_unit) != 0 ? 1 : 0);
}
std::int64_t to_ns(std::uint64_t units, unsigned shift) { return static_cast<std::int64_t>(units << shift); }

// The samples of one channel.
struct Block {
  Column before;  // in units of 2^shift ns
  Column after;
  Column raw;                             // of successful reads
  std::vector<std::uint64_t> failed_at;   // indexes of failed reads
  std::vector<std::uint8_t> failed_code;  // their ReadCode
};

Block make_block(std::span<const Sample> samples, unsigned shift) {
  Block block;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Reading& reading = samples[i].reading;
    block.before.push_back(units_down(reading.before_ns, shift));
    block.after.push_back(units_up(reading.after_ns, shift));
    if (reading.code == ReadCode::ok) {
      block.raw.push_back(reading.raw);
    } else {
      block.failed_at.push_back(i);
      block.failed_code.push_back(static_cast<std::uint8_t>(reading.code));
    }
  }
  return block;
}

Column minus(const Column& values, const Column& others) {
  Column differences = values;
  for (std::size_t i = 0; i < values.size(); ++i) differences[i] -= others[i];
  return differences;
}

std::string column_bytes(const Column& values) {
  WireWriter out;
  encode_column(out, values);
  return std::move(out).take();
}

// A sensor reads its channels one after another, so a read begins when that of the previous channel has ended. The gap
// between them is far smaller than the timer jitter that all of them share, so it may be stored instead of the time.
void put_before(WireWriter& out, const Block& block, const Block* previous, std::uint64_t base) {
  const std::string alone = column_bytes(minus(block.before, Column(block.before.size(), base)));
  if (previous != nullptr && previous->after.size() == block.before.size()) {
    const std::string following = column_bytes(minus(block.before, previous->after));
    if (following.size() < alone.size()) {
      out.u8(1);
      return out.raw(following);
    }
  }
  out.u8(0);
  out.raw(alone);
}

void put_block(WireWriter& out, std::uint32_t channel, const Block& block, const Block* previous, std::uint64_t base) {
  out.varint(channel);
  out.varint(block.before.size());
  out.varint(block.failed_at.size());
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < block.failed_at.size(); ++i) {
    out.varint(block.failed_at[i] - last);
    out.u8(block.failed_code[i]);
    last = block.failed_at[i];
  }
  put_before(out, block, previous, base);
  encode_column(out, minus(block.after, block.before));
  encode_column(out, block.raw);
}

void put_clocks(WireWriter& out, const std::vector<ClockPair>& clocks, std::uint64_t base_ns) {
  Column monotonic;
  Column ahead;  // Unix clock minus monotonic clock, nearly constant
  for (const ClockPair& pair : clocks) {
    monotonic.push_back(static_cast<std::uint64_t>(pair.monotonic_ns) - base_ns);
    ahead.push_back(static_cast<std::uint64_t>(pair.unix_ns) - static_cast<std::uint64_t>(pair.monotonic_ns));
  }
  out.varint(clocks.size());
  encode_column(out, monotonic);
  encode_column(out, ahead);
}

std::int64_t first_time_ns(const SampleBatch& batch) {
  if (!batch.samples.empty()) return batch.samples.front().reading.before_ns;
  return batch.clocks.empty() ? 0 : batch.clocks.front().monotonic_ns;
}

void take_clocks(WireReader& in, std::uint64_t base_ns, std::vector<ClockPair>& clocks) {
  const std::uint64_t count = in.varint();
  if (count > kMaxClockPairsPerChunk) return in.fail();
  const Column monotonic = decode_column(in, count);
  const Column ahead = decode_column(in, count);
  if (!in.ok()) return;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t monotonic_ns = base_ns + monotonic[i];
    clocks.push_back({static_cast<std::int64_t>(monotonic_ns), static_cast<std::int64_t>(monotonic_ns + ahead[i])});
  }
}

std::vector<ReadCode> take_codes(WireReader& in, std::size_t count) {
  std::vector<ReadCode> codes(count, ReadCode::ok);
  const std::uint64_t failures = in.varint();
  if (failures > count) in.fail();
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < failures && in.ok(); ++i) {
    const std::uint64_t step = in.varint();
    const std::uint8_t code = in.u8();
    if (step >= count - at || code == 0 || (i > 0 && step == 0)) {
      in.fail();
      break;
    }
    at += step;
    // An error code that only a newer version defines is still a failure.
    codes[at] = code < kReadCodeCount ? static_cast<ReadCode>(code) : ReadCode::failed;
  }
  return codes;
}

// Appends the samples of one block and sets `previous_after` to its end times, for the next block.
void take_block(WireReader& in, std::uint64_t base, SampleBatch& batch, Column& previous_after) {
  const std::uint64_t channel = in.varint();
  const std::uint64_t count = in.varint();
  if (channel > UINT32_MAX || count > kMaxSamplesPerChunk - batch.samples.size()) return in.fail();
  const std::vector<ReadCode> codes = take_codes(in, count);
  const bool follows = in.flag();
  if (follows && previous_after.size() != count) in.fail();
  const Column before = decode_column(in, count);
  const Column duration = decode_column(in, count);
  const auto succeeded = static_cast<std::size_t>(std::count(codes.begin(), codes.end(), ReadCode::ok));
  const Column raw = decode_column(in, succeeded);
  if (!in.ok()) return;
  Column after(count);
  std::size_t next_raw = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t begin = before[i] + (follows ? previous_after[i] : base);
    after[i] = begin + duration[i];
    const std::uint64_t value = codes[i] == ReadCode::ok ? raw[next_raw++] : 0;
    batch.samples.push_back(
        {static_cast<std::uint32_t>(channel),
         {value, to_ns(begin, batch.time_unit_log2), to_ns(after[i], batch.time_unit_log2), codes[i]}});
  }
  previous_after = std::move(after);
}

}  // namespace

std::string encode_samples(const SampleBatch& batch) {
  JOULEMAP_CHECK(batch.samples.size() <= kMaxSamplesPerChunk, "more samples than a chunk may hold");
  JOULEMAP_CHECK(batch.clocks.size() <= kMaxClockPairsPerChunk, "more clock pairs than a chunk may hold");
  std::vector<Sample> sorted = batch.samples;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Sample& a, const Sample& b) { return a.channel < b.channel; });
  const std::uint64_t base = units_down(first_time_ns(batch), batch.time_unit_log2);

  WireWriter blocks;
  std::uint64_t block_count = 0;
  std::optional<Block> previous;
  for (auto first = sorted.begin(); first != sorted.end(); ++block_count) {
    const auto last = std::find_if(first, sorted.end(), [&](const Sample& s) { return s.channel != first->channel; });
    Block block = make_block(std::span<const Sample>(first, last), batch.time_unit_log2);
    put_block(blocks, first->channel, block, previous ? &*previous : nullptr, base);
    previous = std::move(block);
    first = last;
  }

  WireWriter out;
  out.u8(static_cast<std::uint8_t>(batch.time_unit_log2));
  out.varint(zigzag(base));
  put_clocks(out, batch.clocks, base << batch.time_unit_log2);
  out.varint(block_count);
  out.raw(blocks.bytes());
  return std::move(out).take();
}

std::optional<SampleBatch> decode_samples(std::string_view payload) {
  WireReader in(payload);
  SampleBatch batch;
  batch.time_unit_log2 = in.u8();
  if (batch.time_unit_log2 > kMaxTimeUnitLog2) return std::nullopt;
  const std::uint64_t base = unzigzag(in.varint());
  take_clocks(in, base << batch.time_unit_log2, batch.clocks);
  const std::size_t blocks = in.count();
  Column previous_after;
  for (std::size_t i = 0; i < blocks && in.ok(); ++i) take_block(in, base, batch, previous_after);
  if (!in.ok()) return std::nullopt;
  return batch;
}

}  // namespace joulemap::recording
