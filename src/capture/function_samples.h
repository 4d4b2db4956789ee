// SPDX-License-Identifier: Apache-2.0
//
// FunctionSampleTallies: stack samples since the last move_samples_into(), summed by function (a scope of kind
// function). The sampling thread adds, the writing thread takes. Times are nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "model/activity.h"

namespace joulemap::capture {

class FunctionSampleTallies {
 public:
  // Adds a sample in `scope`, a function within `coarse_scope`, that represents time_ns of run time.
  void add(std::uint32_t coarse_scope, std::uint32_t scope, std::int64_t time_ns) {
    const std::lock_guard lock(lock_);
    ScopeShare& share = scope_shares_[scope];
    share.coarse_scope = coarse_scope;
    share.scope = scope;
    ++share.count;
    share.time_ns += time_ns;
  }
  void move_samples_into(std::vector<ScopeShare>& scope_shares) {
    const std::lock_guard lock(lock_);
    for (const auto& [scope, share] : scope_shares_) scope_shares.push_back(share);
    scope_shares_.clear();
  }

 private:
  std::mutex lock_;
  std::map<std::uint32_t, ScopeShare> scope_shares_;
};

}  // namespace joulemap::capture
