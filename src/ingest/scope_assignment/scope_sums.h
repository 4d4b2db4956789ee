// SPDX-License-Identifier: Apache-2.0
//
// ScopeSums: wall time of threads in each scope, in one time slice of a trace at a time. A trace contains the wall time
// of a thread but not its CPU time; wall time is used instead (import_recording.h reports that). Single-threaded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/activity.h"

namespace joulemap::ingest {

class ScopeSums {
 public:
  void add_time(std::uint32_t scope, std::int64_t time_ns) {
    at(scope).time_ns += time_ns;
    total_time_ns_ += time_ns;
  }
  // Counts a call. A trace contains every call, so take() returns this count as the total and as the traced count.
  void count(std::uint32_t scope) { ++at(scope).count; }
  // Moves one call, with its time, from one scope to another. Sums that `take` has already returned do not change.
  void move_call_to_scope(std::uint32_t from, std::uint32_t to, std::int64_t time_ns) {
    Sum& source = at(from);
    const bool has_call = source.count > 0;
    if (has_call) --source.count;
    time_ns = std::clamp<std::int64_t>(time_ns, 0, source.time_ns);
    source.time_ns -= time_ns;
    if (has_call) count(to);
    if (time_ns > 0) add_time(to, time_ns);
    total_time_ns_ -= time_ns;
  }
  // Returns and clears the sums since the last call, ordered by scope.
  std::vector<ScopeTally> take() {
    std::vector<ScopeTally> tallies;
    tallies.reserve(touched_.size());
    const auto take_scope = [&](std::uint32_t scope) {
      const Sum sum = std::exchange(sums_[scope], {});
      if (sum.count == 0 && sum.time_ns == 0) return;
      tallies.push_back({scope, sum.count, sum.count, sum.time_ns, sum.time_ns, 0});
    };
    if (touched_.size() >= sums_.size() / kSparseFraction) {
      for (std::uint32_t scope = 0; scope < sums_.size(); ++scope) take_scope(scope);
    } else {
      std::sort(touched_.begin(), touched_.end());
      for (const std::uint32_t scope : touched_) take_scope(scope);
    }
    touched_.clear();
    return tallies;
  }
  std::int64_t total_time_ns() const { return total_time_ns_; }  // total since construction

 private:
  // If fewer than 1/kSparseFraction of the scopes have a sum, sorting `touched_` is cheaper than scanning all scopes.
  static constexpr std::size_t kSparseFraction = 4;

  struct Sum {
    std::uint64_t count = 0;
    std::int64_t time_ns = 0;
  };

  Sum& at(std::uint32_t scope) {
    const bool is_touched = scope < sums_.size() && (sums_[scope].count != 0 || sums_[scope].time_ns != 0);
    return is_touched ? sums_[scope] : add_sum(scope);
  }
  [[gnu::noinline]] Sum& add_sum(std::uint32_t scope) {
    if (scope >= sums_.size()) sums_.resize(scope + scope / 2 + std::size_t{64});
    touched_.push_back(scope);
    return sums_[scope];
  }

  std::vector<Sum> sums_;               // by scope
  std::vector<std::uint32_t> touched_;  // scopes that have a sum; may contain duplicates
  std::int64_t total_time_ns_ = 0;
};

}  // namespace joulemap::ingest
