// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/clock_map.h"

#include <algorithm>
#include <cstdlib>

namespace joulemap::capture::cupti {

void ClockMap::add_clock_pair(std::int64_t record_ns, std::int64_t monotonic_ns) {
  const ClockReadings clock_readings{record_ns, monotonic_ns};
  const bool is_same_segment =
      !segments_.empty() && record_ns >= segments_.back().back().record_ns &&
      std::abs(clock_readings.offset_ns() - segments_.back().back().offset_ns()) <= kMinClockJump_ns;
  if (!is_same_segment) segments_.emplace_back();
  segments_.back().push_back(clock_readings);
  if (++pair_count_ > kMaxClockPairs) drop_oldest_pairs();
}

void ClockMap::drop_oldest_pairs() {
  // Drops the oldest segment, or half of it when it is the only one: dropping single pairs would move the rest each
  // time.
  Segment& oldest_segment = segments_.front();
  const std::size_t dropped_pair_count = segments_.size() > 1 ? oldest_segment.size() : oldest_segment.size() / 2;
  pair_count_ -= dropped_pair_count;
  if (dropped_pair_count == oldest_segment.size()) {
    segments_.erase(segments_.begin());
  } else {
    oldest_segment.erase(oldest_segment.begin(),
                         oldest_segment.begin() + static_cast<std::ptrdiff_t>(dropped_pair_count));
  }
}

std::int64_t ClockMap::interpolate(const Segment& segment, std::int64_t record_ns) {
  const auto next_readings = std::upper_bound(
      segment.begin(), segment.end(), record_ns,
      [](std::int64_t time, const ClockReadings& clock_readings) { return time < clock_readings.record_ns; });
  if (next_readings == segment.begin()) return record_ns + segment.front().offset_ns();
  const ClockReadings& previous_readings = *(next_readings - 1);
  if (next_readings == segment.end()) return record_ns + previous_readings.offset_ns();
  const double share = static_cast<double>(record_ns - previous_readings.record_ns) /
                       static_cast<double>(next_readings->record_ns - previous_readings.record_ns);
  const double drift_ns = share * static_cast<double>(next_readings->offset_ns() - previous_readings.offset_ns());
  return record_ns + previous_readings.offset_ns() + static_cast<std::int64_t>(drift_ns);
}

std::optional<std::int64_t> ClockMap::to_monotonic_ns(std::int64_t record_ns, std::int64_t now_ns) const {
  if (segments_.empty()) return std::nullopt;
  for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
    if (record_ns >= segment->front().record_ns && record_ns <= segment->back().record_ns) {
      return interpolate(*segment, record_ns);
    }
  }
  // The time is outside of all pairs. The newest segment, tried first, extends up to now, because its clock still runs;
  // the others extend only by kMaxSegmentExtension_ns.
  const auto is_plausible = [&](std::int64_t monotonic_ns) {
    return monotonic_ns >= earliest_ns_ && monotonic_ns <= now_ns + kMaxRecordAhead_ns;
  };
  for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
    const bool is_newest_segment = segment == segments_.rbegin();
    const std::int64_t mapped_ns = interpolate(*segment, record_ns);
    if (!is_plausible(mapped_ns)) continue;
    const std::int64_t last_ns = segment->back().record_ns;
    if (record_ns > last_ns && (is_newest_segment || record_ns - last_ns <= kMaxSegmentExtension_ns)) return mapped_ns;
    if (record_ns < segment->front().record_ns && segment->front().record_ns - record_ns <= kMaxSegmentExtension_ns)
      return mapped_ns;
  }
  return std::nullopt;
}

}  // namespace joulemap::capture::cupti
