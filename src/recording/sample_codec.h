// SPDX-License-Identifier: Apache-2.0
//
// The payload of a samples chunk: the samples of all channels of a source from about a second, in columns, and the
// clock pairs of that time. Decoding returns the samples channel by channel, each channel in its original order. Pure;
// any thread.
//
// The unit of times is 2^time_unit_log2 ns: `before` is rounded down, `after` up, so the time of the read stays between
// them. At the default of 512 ns (0.5 mJ at 1 kW, far below one update of any counter) a sample takes under 4 bytes.
// With exact nanoseconds (time_unit_log2 0) half of the file would be noise. Raw values are always exact. They are
// stored only for successful reads; for failed reads the decoder returns 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/recorded.h"
#include "model/sample.h"

namespace joulemap::recording {

inline constexpr unsigned kSampleTimeUnitLog2 = kReadTimeUnitLog2;
inline constexpr unsigned kMaxTimeUnitLog2 = 20;
// Limits per chunk. They bound the memory of a reader, independent of the file's content.
inline constexpr std::size_t kMaxSamplesPerChunk = 65536;
inline constexpr std::size_t kMaxClockPairsPerChunk = 65536;

struct SampleBatch {
  unsigned time_unit_log2 = kSampleTimeUnitLog2;
  std::vector<ClockPair> clock_pairs;
  std::vector<Sample> samples;

  bool empty() const { return clock_pairs.empty() && samples.empty(); }
};

// At most kMaxSamplesPerChunk samples and kMaxClockPairsPerChunk clocks.
std::string encode_samples(const SampleBatch& batch);

// Returns nullopt if the payload is invalid.
std::optional<SampleBatch> decode_samples(std::string_view payload);

}  // namespace joulemap::recording
