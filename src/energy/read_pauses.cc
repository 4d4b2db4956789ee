// SPDX-License-Identifier: Apache-2.0
#include "energy/read_pauses.h"

#include <algorithm>

#include "base/clock.h"
#include "energy/edge_rules.h"

namespace joulemap {
namespace {

constexpr double kMinPauseInPeriods = 5;
// Other load on the machine delays a reading by some tenths of a second.
constexpr double kMinGaugePause_s = 0.25;
constexpr double kMinCounterPause_s = 1;
// An estimate is read once a second (sensors/read_schedule.cc).
constexpr double kMinEstimatePause_s = 5;
// A counter that is expensive to read is skipped for up to 10 s by design (sensors/nvml/nvml_read_schedule.cc).
constexpr double kMinSlowCounterPause_s = 12;
// Bounds the memory. A recording with more pauses is unusable anyway.
constexpr std::size_t kMaxStoredPauses = 4096;

double min_pause_s(const Channel& channel) {
  if (channel.kind == ChannelKind::gauge) return std::max(kMinGaugePause_s, kMinPauseInPeriods * channel.refresh_s);
  if (channel.provenance == Provenance::estimated) return kMinEstimatePause_s;
  return is_slowly_updating_counter(channel) ? kMinSlowCounterPause_s : kMinCounterPause_s;
}

}  // namespace

ReadPauses::ReadPauses(const Channel& channel)
    : min_pause_ns_(static_cast<std::int64_t>(min_pause_s(channel) * static_cast<double>(kNanosecondsPerSecond))) {}

// latest_times_ns_ is a sliding window. Each interval between readings is at its centre exactly once, with all its
// neighbours.
void ReadPauses::add_reading(std::int64_t time_ns) noexcept {
  if (is_pause(kNeighboursPerSide) && pauses_.size() < kMaxStoredPauses) {
    pauses_.push_back({latest_times_ns_[kNeighboursPerSide], latest_times_ns_[kNeighboursPerSide + 1]});
  }
  std::copy(latest_times_ns_.begin() + 1, latest_times_ns_.end(), latest_times_ns_.begin());
  latest_times_ns_.back() = time_ns;
  time_count_ = std::min(time_count_ + 1, latest_times_ns_.size());
}

bool ReadPauses::is_pause(std::size_t interval) const noexcept {
  const std::size_t first_interval = latest_times_ns_.size() - time_count_;
  const auto length_ns = [&](std::size_t i) { return latest_times_ns_[i + 1] - latest_times_ns_[i]; };
  if (interval < first_interval || interval >= kIntervalCount || length_ns(interval) < min_pause_ns_) return false;
  std::int64_t longest_ns = 0;
  const std::size_t begin = std::max(first_interval, interval - std::min(interval, kNeighboursPerSide));
  const std::size_t end = std::min(kIntervalCount, interval + kNeighboursPerSide + 1);
  for (std::size_t i = begin; i < end; ++i) {
    if (i != interval) longest_ns = std::max(longest_ns, length_ns(i));
  }
  if (longest_ns == 0) return false;  // only two readings: the period is unknown
  return static_cast<double>(length_ns(interval)) > kMinPauseInPeriods * static_cast<double>(longest_ns);
}

}  // namespace joulemap
