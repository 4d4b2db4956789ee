// SPDX-License-Identifier: Apache-2.0
//
// ReadPauses: intervals in which a channel was not read on schedule because the recorder was stopped, or the machine
// was starved or suspended. Read periods vary, and reads are denser at the edges of a window. So the expected period
// comes from the readings: an interval is a pause when it is several times longer than the longest of its neighbours.
// Bounded memory. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/channel.h"
#include "model/time_points.h"

namespace joulemap {

class ReadPauses {
 public:
  explicit ReadPauses(const Channel& channel);

  // Adds a good reading; in order of time.
  void add_reading(std::int64_t time_ns) noexcept;

  // Calls `use` for all pauses so far, including among the latest readings.
  template <class Use>
  void for_each_pause(const Use& use) const {
    for (const TimeSpan& pause : pauses_) use(pause);
    for (std::size_t i = kNeighboursPerSide; i < kIntervalCount; ++i) {
      if (is_pause(i)) use(TimeSpan{latest_times_ns_[i], latest_times_ns_[i + 1]});
    }
  }

 private:
  static constexpr std::size_t kNeighboursPerSide = 3;                       // neighbouring intervals on each side
  static constexpr std::size_t kIntervalCount = 2 * kNeighboursPerSide + 1;  // intervals between the latest readings

  bool is_pause(std::size_t interval) const noexcept;

  std::int64_t min_pause_ns_;  // minimum length of a pause, whatever its neighbours
  std::array<std::int64_t, kIntervalCount + 1> latest_times_ns_{};  // times of the latest readings
  std::size_t time_count_ = 0;                                      // number of valid entries in latest_times_ns_
  std::vector<TimeSpan> pauses_;
};

}  // namespace joulemap
