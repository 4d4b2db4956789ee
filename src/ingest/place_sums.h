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
    PlaceTally& sum = at(place);
    sum.wall_ns += time_ns;
    sum.cpu_ns += time_ns;
    placed_ns_ += time_ns;
  }
  // Every step of a trace tells its operations.
  void count(std::uint32_t place) {
    PlaceTally& sum = at(place);
    ++sum.count;
    ++sum.sampled;
  }
  // One call that was counted at a place, with that much time, turns out to be another's. What was taken already stays.
  void move(std::uint32_t from, std::uint32_t to, std::int64_t time_ns) {
    PlaceTally& source = at(from);
    const bool has_call = source.count > 0;
    if (has_call) --source.count, --source.sampled;
    time_ns = std::clamp<std::int64_t>(time_ns, 0, source.wall_ns);
    source.wall_ns -= time_ns;
    source.cpu_ns -= time_ns;
    if (has_call) count(to);
    if (time_ns > 0) add_time(to, time_ns);
    placed_ns_ -= time_ns;
  }
  // What has come since it was asked last, by place.
  std::vector<PlaceTally> take() {
    for (const PlaceTally& row : rows_) row_of_[row.place] = 0;
    std::erase_if(rows_, [](const PlaceTally& row) { return row.count == 0 && row.wall_ns == 0; });
    std::sort(rows_.begin(), rows_.end(), [](const PlaceTally& a, const PlaceTally& b) { return a.place < b.place; });
    return std::exchange(rows_, {});
  }
  std::int64_t placed_ns() const { return placed_ns_; }  // in all

 private:
  PlaceTally& at(std::uint32_t place) {
    if (place >= row_of_.size()) row_of_.resize(place + place / 2 + std::size_t{64});
    std::uint32_t& row = row_of_[place];
    if (row == 0) {
      rows_.push_back({.place = place});
      row = static_cast<std::uint32_t>(rows_.size());
    }
    return rows_[row - 1];
  }

  std::vector<PlaceTally> rows_;
  std::vector<std::uint32_t> row_of_;  // by place: its row + 1
  std::int64_t placed_ns_ = 0;
};

}  // namespace joulemap::ingest
