// SPDX-License-Identifier: Apache-2.0
//
// ClockMap: converts times of CUPTI's record clock to CLOCK_MONOTONIC, both in nanoseconds. It interpolates linearly
// between pairs of readings of both clocks, about two pairs a second. When the offset changes by more than a
// millisecond between two pairs, one clock has jumped (CUPTI's clock was replaced, or the time of day was set). Then a
// new segment begins; earlier records still use the old one.
//
// A time outside of all segments comes from a foreign clock and is rejected (nullopt). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace joulemap::capture::cupti {

inline constexpr std::int64_t kMinClockJump_ns = kNanosecondsPerMillisecond;
inline constexpr std::int64_t kMaxSegmentExtension_ns =
    2 * kNanosecondsPerSecond;  // how far a segment extends beyond its pairs
inline constexpr std::int64_t kMaxRecordAhead_ns =
    kNanosecondsPerSecond;                           // a record may end at most this long after now
inline constexpr std::size_t kMaxClockPairs = 8192;  // about an hour: no record arrives later than that

class ClockMap {
 public:
  // Records before earliest_ns (CLOCK_MONOTONIC) are rejected.
  explicit ClockMap(std::int64_t earliest_ns) : earliest_ns_(earliest_ns) {}

  void add_clock_pair(std::int64_t record_ns, std::int64_t monotonic_ns);

  std::optional<std::int64_t> to_monotonic_ns(std::int64_t record_ns, std::int64_t now_ns) const;

  std::size_t segment_count() const { return segments_.size(); }

 private:
  struct ClockReadings {
    std::int64_t record_ns;
    std::int64_t monotonic_ns;
    std::int64_t offset_ns() const { return monotonic_ns - record_ns; }
  };
  using Segment = std::vector<ClockReadings>;  // ascending, never empty

  static std::int64_t interpolate(const Segment& segment, std::int64_t record_ns);
  void drop_oldest_pairs();

  const std::int64_t earliest_ns_;
  std::vector<Segment> segments_;  // newest last
  std::size_t pair_count_ = 0;
};

}  // namespace joulemap::capture::cupti
