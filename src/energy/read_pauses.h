// SPDX-License-Identifier: Apache-2.0
//
// ReadPauses: times in which a channel was not read although it should have been: a recorder that was stopped, a machine
// that was starved or suspended. A channel may be read at any period, and more often at the edges of a window, so the
// expected period is taken from the readings themselves: an interval is a pause when it is several times longer than the
// longest of its neighbours. Bounded memory. Pure.
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

  // A good reading, in order of time.
  void note(std::int64_t time_ns) noexcept;

  // Those seen so far, the latest readings included.
  template <class Use>
  void for_each(const Use& use) const {
    for (const TimeSpan& pause : pauses_) use(pause);
    for (std::size_t i = kNeighbours; i < kKept; ++i) {
      if (is_pause(i)) use(TimeSpan{times_ns_[i], times_ns_[i + 1]});
    }
  }

 private:
  static constexpr std::size_t kNeighbours = 3;              // on each side
  static constexpr std::size_t kKept = 2 * kNeighbours + 1;  // intervals between the latest readings

  bool is_pause(std::size_t interval) const noexcept;

  std::int64_t shortest_ns_;                        // a shorter interval is none, whatever its neighbours
  std::array<std::int64_t, kKept + 1> times_ns_{};  // the latest last
  std::size_t count_ = 0;                           // of those: how many are set, at most all
  std::vector<TimeSpan> pauses_;
};

}  // namespace joulemap
