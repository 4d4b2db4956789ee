// SPDX-License-Identifier: Apache-2.0
//
// PlaceSums: wall time of threads in each scope, for one time slice of a trace after another. A trace contains the
// wall time of a thread but not its CPU time; wall time is used instead (import_recording.h reports that).
// Single-threaded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/activity.h"

namespace joulemap::ingest {

class PlaceSums {
 public:
  void add_time(std::uint32_t place, std::int64_t time_ns) {
    at(place).time_ns += time_ns;
    placed_ns_ += time_ns;
  }
  // A trace contains the operations of every step: the traced count is the total count.
  void count(std::uint32_t place) { ++at(place).count; }
  // Moves one call, with its time, from one scope to another. Sums that `take` has already returned do not change.
  void move(std::uint32_t from, std::uint32_t to, std::int64_t time_ns) {
    Sum& source = at(from);
    const bool has_call = source.count > 0;
    if (has_call) --source.count;
    time_ns = std::clamp<std::int64_t>(time_ns, 0, source.time_ns);
    source.time_ns -= time_ns;
    if (has_call) count(to);
    if (time_ns > 0) add_time(to, time_ns);
    placed_ns_ -= time_ns;
  }
  // Returns and clears the sums since the last call, ordered by scope.
  std::vector<PlaceTally> take() {
    std::vector<PlaceTally> taken;
    taken.reserve(touched_.size());
    const auto take_one = [&](std::uint32_t place) {
      const Sum sum = std::exchange(sums_[place], {});
      if (sum.count == 0 && sum.time_ns == 0) return;
      taken.push_back({place, sum.count, sum.count, sum.time_ns, sum.time_ns, 0});
    };
    if (touched_.size() >= sums_.size() / kFewAmongPlaces) {
      for (std::uint32_t place = 0; place < sums_.size(); ++place) take_one(place);
    } else {
      std::sort(touched_.begin(), touched_.end());
      for (const std::uint32_t place : touched_) take_one(place);
    }
    touched_.clear();
    return taken;
  }
  std::int64_t placed_ns() const { return placed_ns_; }  // total since construction

 private:
  // If fewer than 1/kFewAmongPlaces of the scopes have a sum, sorting `touched_` is cheaper than scanning all scopes.
  static constexpr std::size_t kFewAmongPlaces = 4;

  struct Sum {
    std::uint64_t count = 0;
    std::int64_t time_ns = 0;
  };

  Sum& at(std::uint32_t place) {
    const bool is_touched = place < sums_.size() && (sums_[place].count != 0 || sums_[place].time_ns != 0);
    return is_touched ? sums_[place] : touch(place);
  }
  [[gnu::noinline]] Sum& touch(std::uint32_t place) {
    if (place >= sums_.size()) sums_.resize(place + place / 2 + std::size_t{64});
    touched_.push_back(place);
    return sums_[place];
  }

  std::vector<Sum> sums_;               // by scope
  std::vector<std::uint32_t> touched_;  // scopes that have a sum; may contain duplicates
  std::int64_t placed_ns_ = 0;
};

}  // namespace joulemap::ingest
