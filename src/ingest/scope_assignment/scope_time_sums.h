// SPDX-License-Identifier: Apache-2.0
//
// ScopeTimeSums: wall time of threads in each scope, in one time slice of a trace at a time. A trace contains the wall
// time of a thread but not its CPU time; wall time is used instead (import_recording.h reports that). Single-threaded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/activity.h"

namespace joulemap::ingest {

class ScopeTimeSums {
 public:
  void add_time(std::uint32_t scope, std::int64_t time_ns) {
    find_or_add_sum(scope).time_ns += time_ns;
    total_time_ns_ += time_ns;
  }
  // Counts a call. A trace contains every call, so take_sums() returns this count as the total and as the traced count.
  void count_call(std::uint32_t scope) { ++find_or_add_sum(scope).call_count; }
  // Moves one call, with its time, from one scope to another. Sums that `take_sums` has already returned do not change.
  void move_call_to_scope(std::uint32_t source_scope, std::uint32_t target_scope, std::int64_t time_ns) {
    Sum& source = find_or_add_sum(source_scope);
    const bool has_call = source.call_count > 0;
    if (has_call) --source.call_count;
    time_ns = std::clamp<std::int64_t>(time_ns, 0, source.time_ns);
    source.time_ns -= time_ns;
    if (has_call) count_call(target_scope);
    if (time_ns > 0) add_time(target_scope, time_ns);
    total_time_ns_ -= time_ns;
  }
  // Returns and clears the sums since the last call, ordered by scope.
  std::vector<ScopeTally> take_sums() {
    std::vector<ScopeTally> tallies;
    tallies.reserve(scopes_with_sums_.size());
    const auto take_scope = [&](std::uint32_t scope) {
      const Sum sum = std::exchange(sums_[scope], {});
      if (sum.call_count == 0 && sum.time_ns == 0) return;
      tallies.push_back({scope, sum.call_count, sum.call_count, sum.time_ns, sum.time_ns, 0});
    };
    if (scopes_with_sums_.size() >= sums_.size() / kSparseDivisor) {
      for (std::uint32_t scope = 0; scope < sums_.size(); ++scope) take_scope(scope);
    } else {
      std::sort(scopes_with_sums_.begin(), scopes_with_sums_.end());
      for (const std::uint32_t scope : scopes_with_sums_) take_scope(scope);
    }
    scopes_with_sums_.clear();
    return tallies;
  }
  std::int64_t total_time_ns() const { return total_time_ns_; }  // total since construction

 private:
  // If fewer than 1/kSparseDivisor of the scopes have a sum, sorting `scopes_with_sums_` is cheaper than scanning all
  // scopes.
  static constexpr std::size_t kSparseDivisor = 4;

  struct Sum {
    std::uint64_t call_count = 0;
    std::int64_t time_ns = 0;
  };

  Sum& find_or_add_sum(std::uint32_t scope) {
    const bool has_sum = scope < sums_.size() && (sums_[scope].call_count != 0 || sums_[scope].time_ns != 0);
    return has_sum ? sums_[scope] : add_scope_entry(scope);
  }
  [[gnu::noinline]] Sum& add_scope_entry(std::uint32_t scope) {
    if (scope >= sums_.size()) sums_.resize(scope + scope / 2 + std::size_t{64});
    scopes_with_sums_.push_back(scope);
    return sums_[scope];
  }

  std::vector<Sum> sums_;                        // by scope
  std::vector<std::uint32_t> scopes_with_sums_;  // scopes that have a sum; may contain duplicates
  std::int64_t total_time_ns_ = 0;
};

}  // namespace joulemap::ingest
