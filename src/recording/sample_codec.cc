// SPDX-License-Identifier: Apache-2.0
#include "recording/sample_codec.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "recording/column.h"

namespace joulemap::recording {
namespace {

using UnsignedColumn = std::vector<std::uint64_t>;

// Unsigned, because arithmetic is modulo 2^64: even an invalid time must round-trip.
std::uint64_t floor_to_time_units(std::int64_t time_ns, unsigned shift) {
  return static_cast<std::uint64_t>(time_ns >> shift);
}
std::uint64_t ceil_to_time_units(std::int64_t time_ns, unsigned shift) {
  const std::int64_t remainder_mask = (std::int64_t{1} << shift) - 1;
  return floor_to_time_units(time_ns, shift) + ((time_ns & remainder_mask) != 0 ? 1 : 0);
}
std::int64_t time_units_to_ns(std::uint64_t units, unsigned shift) { return static_cast<std::int64_t>(units << shift); }

// The samples of one channel.
struct ChannelSampleColumns {
  UnsignedColumn begin_time_units;  // in units of 2^shift ns
  UnsignedColumn end_time_units;
  UnsignedColumn raw_values;                       // of successful reads
  std::vector<std::uint64_t> failed_read_indexes;  // indexes of failed reads
  std::vector<std::uint8_t> failed_read_codes;     // their ReadCode
};

ChannelSampleColumns make_channel_block(std::span<const Sample> samples, unsigned shift) {
  ChannelSampleColumns block;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Reading& reading = samples[i].reading;
    block.begin_time_units.push_back(floor_to_time_units(reading.before_ns, shift));
    block.end_time_units.push_back(ceil_to_time_units(reading.after_ns, shift));
    if (reading.code == ReadCode::ok) {
      block.raw_values.push_back(reading.raw);
    } else {
      block.failed_read_indexes.push_back(i);
      block.failed_read_codes.push_back(static_cast<std::uint8_t>(reading.code));
    }
  }
  return block;
}

UnsignedColumn subtract_columns(const UnsignedColumn& values, const UnsignedColumn& subtrahends) {
  UnsignedColumn differences = values;
  for (std::size_t i = 0; i < values.size(); ++i) differences[i] -= subtrahends[i];
  return differences;
}

std::string encode_column_bytes(const UnsignedColumn& values) {
  WireWriter out;
  encode_column(out, values);
  return std::move(out).take_bytes();
}

// A sensor reads its channels one after another, so a read begins when that of the previous channel has ended. The gap
// between them is far smaller than the timer jitter that all of them share, so it may be stored instead of the time.
void write_begin_times(WireWriter& out, const ChannelSampleColumns& block, const ChannelSampleColumns* previous,
                       std::uint64_t base) {
  const std::string relative_to_base_bytes = encode_column_bytes(
      subtract_columns(block.begin_time_units, UnsignedColumn(block.begin_time_units.size(), base)));
  if (previous != nullptr && previous->end_time_units.size() == block.begin_time_units.size()) {
    const std::string relative_to_previous_bytes =
        encode_column_bytes(subtract_columns(block.begin_time_units, previous->end_time_units));
    if (relative_to_previous_bytes.size() < relative_to_base_bytes.size()) {
      out.write_u8(1);
      return out.write_raw(relative_to_previous_bytes);
    }
  }
  out.write_u8(0);
  out.write_raw(relative_to_base_bytes);
}

void write_channel_block(WireWriter& out, std::uint32_t channel, const ChannelSampleColumns& block,
                         const ChannelSampleColumns* previous, std::uint64_t base) {
  out.write_varint(channel);
  out.write_varint(block.begin_time_units.size());
  out.write_varint(block.failed_read_indexes.size());
  std::uint64_t previous_index = 0;
  for (std::size_t i = 0; i < block.failed_read_indexes.size(); ++i) {
    out.write_varint(block.failed_read_indexes[i] - previous_index);
    out.write_u8(block.failed_read_codes[i]);
    previous_index = block.failed_read_indexes[i];
  }
  write_begin_times(out, block, previous, base);
  encode_column(out, subtract_columns(block.end_time_units, block.begin_time_units));
  encode_column(out, block.raw_values);
}

void write_clock_pairs(WireWriter& out, const std::vector<ClockPair>& clocks, std::uint64_t base_ns) {
  UnsignedColumn monotonic_times;
  UnsignedColumn unix_offsets;  // Unix clock minus monotonic clock, nearly constant
  for (const ClockPair& pair : clocks) {
    monotonic_times.push_back(static_cast<std::uint64_t>(pair.monotonic_ns) - base_ns);
    unix_offsets.push_back(static_cast<std::uint64_t>(pair.unix_ns) - static_cast<std::uint64_t>(pair.monotonic_ns));
  }
  out.write_varint(clocks.size());
  encode_column(out, monotonic_times);
  encode_column(out, unix_offsets);
}

std::int64_t first_batch_time_ns(const SampleBatch& batch) {
  if (!batch.samples.empty()) return batch.samples.front().reading.before_ns;
  return batch.clock_pairs.empty() ? 0 : batch.clock_pairs.front().monotonic_ns;
}

void read_clock_pairs(WireReader& reader, std::uint64_t base_ns, std::vector<ClockPair>& clocks) {
  const std::uint64_t count = reader.read_varint();
  if (count > kMaxClockPairsPerChunk) return reader.mark_as_failed();
  const UnsignedColumn monotonic_times = decode_column(reader, count);
  const UnsignedColumn unix_offsets = decode_column(reader, count);
  if (!reader.ok()) return;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t monotonic_ns = base_ns + monotonic_times[i];
    clocks.push_back(
        {static_cast<std::int64_t>(monotonic_ns), static_cast<std::int64_t>(monotonic_ns + unix_offsets[i])});
  }
}

std::vector<ReadCode> decode_read_codes(WireReader& reader, std::size_t count) {
  std::vector<ReadCode> codes(count, ReadCode::ok);
  const std::uint64_t failures = reader.read_varint();
  if (failures > count) reader.mark_as_failed();
  std::uint64_t sample_index = 0;
  for (std::uint64_t i = 0; i < failures && reader.ok(); ++i) {
    const std::uint64_t step = reader.read_varint();
    const std::uint8_t code = reader.read_u8();
    if (step >= count - sample_index || code == 0 || (i > 0 && step == 0)) {
      reader.mark_as_failed();
      break;
    }
    sample_index += step;
    // An error code that only a newer version defines is still a failure.
    codes[sample_index] = code < kReadCodeCount ? static_cast<ReadCode>(code) : ReadCode::failed;
  }
  return codes;
}

// Appends the samples of one block and sets `previous_end_times` to its end times, for the next block.
void read_channel_block(WireReader& reader, std::uint64_t base, SampleBatch& batch,
                        UnsignedColumn& previous_end_times) {
  const std::uint64_t channel = reader.read_varint();
  const std::uint64_t count = reader.read_varint();
  if (channel > UINT32_MAX || count > kMaxSamplesPerChunk - batch.samples.size()) return reader.mark_as_failed();
  const std::vector<ReadCode> codes = decode_read_codes(reader, count);
  const bool follows = reader.read_flag();
  if (follows && previous_end_times.size() != count) reader.mark_as_failed();
  const UnsignedColumn begin_offsets = decode_column(reader, count);
  const UnsignedColumn duration = decode_column(reader, count);
  const auto success_count = static_cast<std::size_t>(std::count(codes.begin(), codes.end(), ReadCode::ok));
  const UnsignedColumn raw_values = decode_column(reader, success_count);
  if (!reader.ok()) return;
  UnsignedColumn after(count);
  std::size_t next_raw_index = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t begin = begin_offsets[i] + (follows ? previous_end_times[i] : base);
    after[i] = begin + duration[i];
    const std::uint64_t value = codes[i] == ReadCode::ok ? raw_values[next_raw_index++] : 0;
    batch.samples.push_back({static_cast<std::uint32_t>(channel),
                             {value, time_units_to_ns(begin, batch.time_unit_log2),
                              time_units_to_ns(after[i], batch.time_unit_log2), codes[i]}});
  }
  previous_end_times = std::move(after);
}

}  // namespace

std::string encode_samples(const SampleBatch& batch) {
  JOULEMAP_CHECK(batch.samples.size() <= kMaxSamplesPerChunk, "more samples than a chunk may hold");
  JOULEMAP_CHECK(batch.clock_pairs.size() <= kMaxClockPairsPerChunk, "more clock pairs than a chunk may hold");
  std::vector<Sample> sorted_samples = batch.samples;
  std::stable_sort(sorted_samples.begin(), sorted_samples.end(),
                   [](const Sample& a, const Sample& b) { return a.channel < b.channel; });
  const std::uint64_t base = floor_to_time_units(first_batch_time_ns(batch), batch.time_unit_log2);

  WireWriter blocks;
  std::uint64_t block_count = 0;
  std::optional<ChannelSampleColumns> previous;
  for (auto block_begin = sorted_samples.begin(); block_begin != sorted_samples.end(); ++block_count) {
    const auto block_end = std::find_if(block_begin, sorted_samples.end(),
                                        [&](const Sample& s) { return s.channel != block_begin->channel; });
    ChannelSampleColumns block =
        make_channel_block(std::span<const Sample>(block_begin, block_end), batch.time_unit_log2);
    write_channel_block(blocks, block_begin->channel, block, previous ? &*previous : nullptr, base);
    previous = std::move(block);
    block_begin = block_end;
  }

  WireWriter out;
  out.write_u8(static_cast<std::uint8_t>(batch.time_unit_log2));
  out.write_varint(zigzag(base));
  write_clock_pairs(out, batch.clock_pairs, base << batch.time_unit_log2);
  out.write_varint(block_count);
  out.write_raw(blocks.bytes());
  return std::move(out).take_bytes();
}

std::optional<SampleBatch> decode_samples(std::string_view payload) {
  WireReader in(payload);
  SampleBatch batch;
  batch.time_unit_log2 = in.read_u8();
  if (batch.time_unit_log2 > kMaxTimeUnitLog2) return std::nullopt;
  const std::uint64_t base = zigzag_decode(in.read_varint());
  read_clock_pairs(in, base << batch.time_unit_log2, batch.clock_pairs);
  const std::size_t blocks = in.read_count();
  UnsignedColumn previous_end_times;
  for (std::size_t i = 0; i < blocks && in.ok(); ++i) read_channel_block(in, base, batch, previous_end_times);
  if (!in.ok()) return std::nullopt;
  return batch;
}

}  // namespace joulemap::recording
