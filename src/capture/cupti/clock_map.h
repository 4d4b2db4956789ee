// SPDX-License-Identifier: Apache-2.0
//
// ClockMap: from the clock that CUPTI stamps records with to CLOCK_MONOTONIC, both in nanoseconds. It is made of moments
// seen on both clocks, about one a second, and lines between them. Where the clocks drift apart by more than a millisecond
// between two moments, one of them has jumped (somebody changed CUPTI's clock, or the time of day was set): a new segment
// begins, and records of the time before are still read by the old one.
//
// A time that no segment covers is of a foreign clock: it is refused rather than guessed. Not for several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace joulemap::capture::cupti {

inline constexpr std::int64_t kClockJumpNs = kNanosecondsPerMillisecond;
inline constexpr std::int64_t kClockSlackNs =
    2 * kNanosecondsPerSecond;                                    // how far beyond its moments a segment reaches
inline constexpr std::int64_t kFutureNs = kNanosecondsPerSecond;  // a record cannot be newer than now by more
inline constexpr std::size_t kMomentsKept = 8192;                 // some two hours: no record is later than that

class ClockMap {
 public:
  // Nothing was recorded before earliest_ns (CLOCK_MONOTONIC).
  explicit ClockMap(std::int64_t earliest_ns) : earliest_ns_(earliest_ns) {}

  void add_moment(std::int64_t record_ns, std::int64_t monotonic_ns);

  std::optional<std::int64_t> to_monotonic(std::int64_t record_ns, std::int64_t now_ns) const;

  std::size_t segments() const { return segments_.size(); }

 private:
  struct Moment {
    std::int64_t record_ns;
    std::int64_t monotonic_ns;
    std::int64_t offset_ns() const { return monotonic_ns - record_ns; }
  };
  using Segment = std::vector<Moment>;  // ascending, never empty

  static std::int64_t map_within(const Segment& segment, std::int64_t record_ns);
  void forget_oldest();

  const std::int64_t earliest_ns_;
  std::vector<Segment> segments_;  // the newest last
  std::size_t moments_ = 0;
};

}  // namespace joulemap::capture::cupti
