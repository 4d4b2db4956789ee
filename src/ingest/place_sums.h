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
    std::vector<PlaceTally> taken;
    taken.reserve(rows_.size());
    const auto take_one = [&](const PlaceTally& row) {
      if (row.count > 0 || row.wall_ns > 0) taken.push_back(row);
    };
    if (rows_.size() >= row_of_.size() / kFewAmongPlaces) {
      for (std::uint32_t& row : row_of_) {
        if (row > 0) take_one(rows_[std::exchange(row, 0) - 1]);
      }
    } else {
      for (const PlaceTally& row : rows_) {
        row_of_[row.place] = 0;
        take_one(row);
      }
      std::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
    }
    rows_.clear();
    return taken;
  }
  std::int64_t placed_ns() const { return placed_ns_; }  // in all

 private:
  // Among more places than this times as many those that have come are sorted, not looked for.
  static constexpr std::size_t kFewAmongPlaces = 16;

  PlaceTally& at(std::uint32_t place) {
    const std::uint32_t row = place < row_of_.size() ? row_of_[place] : 0;
    return row != 0 ? rows_[row - 1] : make(place);
  }
  PlaceTally& make(std::uint32_t place) {
    if (place >= row_of_.size()) row_of_.resize(place + place / 2 + std::size_t{64});
    rows_.push_back({.place = place});
    row_of_[place] = static_cast<std::uint32_t>(rows_.size());
    return rows_.back();
  }

  std::vector<PlaceTally> rows_;
  std::vector<std::uint32_t> row_of_;  // by place: its row + 1
  std::int64_t placed_ns_ = 0;
};

}  // namespace joulemap::ingest
