// SPDX-License-Identifier: Apache-2.0
//
// PlaceSums: the time of threads at places, in one stretch of a trace after another. A trace tells when a thread was where
// and not what CPU time it used: the one is taken for the other (see import_recording.h, which says so). One thread.
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
  // Every step of a trace tells its operations.
  void count(std::uint32_t place) { ++at(place).count; }
  // One call that was counted at a place, with that much time, turns out to be another's. What was taken already stays.
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
  // What has come since it was asked last, by place.
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
  std::int64_t placed_ns() const { return placed_ns_; }  // in all

 private:
  // Among more places than this times as many those that have come are sorted, not looked for.
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

  std::vector<Sum> sums_;               // by place
  std::vector<std::uint32_t> touched_;  // places that have one; some of them twice
  std::int64_t placed_ns_ = 0;
};

}  // namespace joulemap::ingest
