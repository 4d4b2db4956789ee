// SPDX-License-Identifier: Apache-2.0
//
// FunctionSamples: in which functions a program was seen since they were last taken, by place. Added to by the thread
// that looks, taken by the one that writes. Nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "model/activity.h"

namespace joulemap::capture {

class FunctionSamples {
 public:
  // Seen at `place`, which is a function within `coarse`; it stands for so much time.
  void add(std::uint32_t coarse, std::uint32_t place, std::int64_t time_ns) {
    const std::lock_guard lock(lock_);
    PlaceShare& share = shares_[place];
    share.coarse = coarse;
    share.place = place;
    ++share.count;
    share.time_ns += time_ns;
  }
  void take(std::vector<PlaceShare>& into) {
    const std::lock_guard lock(lock_);
    for (const auto& [place, share] : shares_) into.push_back(share);
    shares_.clear();
  }

 private:
  std::mutex lock_;
  std::map<std::uint32_t, PlaceShare> shares_;
};

}  // namespace joulemap::capture
