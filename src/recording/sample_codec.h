// SPDX-License-Identifier: Apache-2.0
//
// The payload of a samples chunk: what all channels of a source gave in about a second, as columns, and the clock pairs
// of that time. Decoding an encoded batch gives the same samples channel by channel, each in the order it was given.
// Pure; any thread.
//
// Times are kept in units of 2^time_shift ns: `before` rounded down, `after` rounded up, so the moment of the read
// stays between them. At the usual 512 ns (0.5 mJ at 1 kW, far inside one step of any counter) a sample takes under 4
// bytes; exact nanoseconds (time_shift 0) would be noise for half of the file. A raw value is exact always, and kept
// only where the read succeeded: elsewhere it means nothing and comes back as 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/recorded.h"
#include "model/sample.h"

namespace joulemap::recording {

inline constexpr unsigned kTimeShift = kReadTimeShift;
inline constexpr unsigned kLargestTimeShift = 20;
// In one chunk: what bounds the memory of a reader, whatever a file says.
inline constexpr std::size_t kMostSamplesPerChunk = 65536;
inline constexpr std::size_t kMostClocksPerChunk = 65536;

struct SampleBatch {
  unsigned time_shift = kTimeShift;
  std::vector<ClockPair> clocks;
  std::vector<Sample> samples;

  bool empty() const { return clocks.empty() && samples.empty(); }
};

// At most kMostSamplesPerChunk samples and kMostClocksPerChunk clocks.
std::string encode_samples(const SampleBatch& batch);

// Nothing when the payload makes no sense.
std::optional<SampleBatch> decode_samples(std::string_view payload);

}  // namespace joulemap::recording
