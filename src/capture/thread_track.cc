// SPDX-License-Identifier: Apache-2.0
#include "capture/thread_track.h"

#include <algorithm>

#include "base/clock.h"

namespace joulemap::capture {

ScopeTally& ThreadTrack::find_or_add_tally(std::uint32_t scope) {
  if (scope >= tally_index_.size()) tally_index_.resize(scope + std::size_t{1});
  if (tally_index_[scope] == 0) {
    tallies_.push_back({.scope = scope});
    tally_index_[scope] = static_cast<std::uint32_t>(tallies_.size());
  }
  return tallies_[tally_index_[scope] - 1];
}

// Splits newly known CPU time over the pending scopes by wall time.
void ThreadTrack::distribute_cpu_time(std::int64_t cpu_ns) {
  std::int64_t wall_ns = 0;
  for (const PendingWallTime& pending : pending_wall_times_) wall_ns += pending.wall_ns;
  std::int64_t remaining_ns = cpu_ns;
  for (std::size_t i = 0; i < pending_wall_times_.size(); ++i) {
    const bool is_last = i + 1 == pending_wall_times_.size();
    const double share =
        wall_ns > 0 ? static_cast<double>(pending_wall_times_[i].wall_ns) / static_cast<double>(wall_ns) : 0;
    const std::int64_t scope_cpu_ns =
        is_last ? remaining_ns : static_cast<std::int64_t>(share * static_cast<double>(cpu_ns));
    find_or_add_tally(pending_wall_times_[i].scope).cpu_ns += scope_cpu_ns;
    remaining_ns -= scope_cpu_ns;
  }
  pending_wall_times_.clear();
}

void ThreadTrack::add_elapsed_time(const ScopeChangeClocks& clocks) {
  const std::uint32_t scope = innermost_scope();
  const std::int64_t wall_ns = std::max(clocks.now_ns - last_update_ns_, std::int64_t{0});
  last_update_ns_ = std::max(clocks.now_ns, last_update_ns_);
  ScopeTally& current_tally = find_or_add_tally(scope);
  current_tally.wall_ns += wall_ns;
  current_tally.helper_threads_cpu_ns += clocks.helper_threads_cpu_ns;
  if (!pending_wall_times_.empty() && pending_wall_times_.back().scope == scope) {
    pending_wall_times_.back().wall_ns += wall_ns;
  } else {
    pending_wall_times_.push_back({scope, wall_ns});
  }
  if (clocks.thread_cpu_ns < 0) return;
  distribute_cpu_time(std::max(clocks.thread_cpu_ns - last_update_cpu_ns_, std::int64_t{0}));
  last_update_cpu_ns_ = std::max(clocks.thread_cpu_ns, last_update_cpu_ns_);
}

void ThreadTrack::count_scope_entry(std::uint32_t scope, bool is_sampled) {
  ScopeTally& tally = find_or_add_tally(scope);
  ++tally.count;
  if (is_sampled) ++tally.sampled_count;
}

void ThreadTrack::set_current_scope(std::uint32_t scope, const ScopeChangeClocks& clocks) {
  current_scope_.store(scope, std::memory_order_relaxed);
  if (clocks.is_scope_change_recorded) host_scope_changes_.push_back({.time_ns = clocks.now_ns, .scope = scope});
}

std::size_t ThreadTrack::enter(std::uint32_t scope, const ScopeChangeClocks& clocks) {
  const std::lock_guard lock(lock_);
  add_elapsed_time(clocks);
  scope_stack_.push_back(scope);
  count_scope_entry(scope, clocks.is_step_sampled);
  set_current_scope(scope, clocks);
  return scope_stack_.size() - 1;
}

void ThreadTrack::leave_to_depth(std::size_t depth, const ScopeChangeClocks& clocks) {
  const std::lock_guard lock(lock_);
  if (depth >= scope_stack_.size()) return;
  add_elapsed_time(clocks);
  scope_stack_.resize(depth);
  set_current_scope(innermost_scope(), clocks);
}

void ThreadTrack::replace_innermost_scope(std::uint32_t scope, const ScopeChangeClocks& clocks, ReentryCounting entry) {
  const std::lock_guard lock(lock_);
  if (scope_stack_.empty() || (scope_stack_.back() == scope && entry == ReentryCounting::ignored)) return;
  add_elapsed_time(clocks);
  scope_stack_.back() = scope;
  count_scope_entry(scope, clocks.is_step_sampled);
  set_current_scope(scope, clocks);
}

void ThreadTrack::set_base_scope(std::uint32_t scope, const ScopeChangeClocks& clocks, ReentryCounting entry) {
  const std::lock_guard lock(lock_);
  if (base_scope_ == scope && entry == ReentryCounting::ignored) return;
  add_elapsed_time(clocks);
  base_scope_ = scope;
  if (scope != 0) count_scope_entry(scope, clocks.is_step_sampled);
  set_current_scope(innermost_scope(), clocks);
}

void ThreadTrack::add_time_since_last_update(const ScopeChangeClocks& clocks) {
  const std::lock_guard lock(lock_);
  add_elapsed_time(clocks);
}

std::int64_t ThreadTrack::read_cpu_ns() const {
  timespec cpu_time{};
  if (clock_gettime(cpu_clock_, &cpu_time) != 0) return -1;
  return static_cast<std::int64_t>(cpu_time.tv_sec) * kNanosecondsPerSecond + cpu_time.tv_nsec;
}

std::int64_t ThreadTrack::take_cpu_increase_ns(std::int64_t cpu_ns) {
  std::int64_t taken_ns = taken_cpu_ns_.load(std::memory_order_relaxed);
  while (cpu_ns > taken_ns) {
    if (taken_cpu_ns_.compare_exchange_weak(taken_ns, cpu_ns, std::memory_order_relaxed)) return cpu_ns - taken_ns;
  }
  return 0;
}

void ThreadTrack::take_tallies(std::vector<ScopeTally>& scope_tallies) {
  const std::lock_guard lock(lock_);
  for (const ScopeTally& scope_tally : tallies_) {
    tally_index_[scope_tally.scope] = 0;
    if (scope_tally.count == 0 && scope_tally.wall_ns == 0 && scope_tally.cpu_ns == 0 &&
        scope_tally.helper_threads_cpu_ns == 0)
      continue;
    scope_tallies.push_back(scope_tally);
  }
  tallies_.clear();
}

void ThreadTrack::take_scope_changes(std::vector<HostScopeChange>& scope_changes) {
  const std::lock_guard lock(lock_);
  scope_changes.insert(scope_changes.end(), host_scope_changes_.begin(), host_scope_changes_.end());
  host_scope_changes_.clear();
}

void sum_scope_tallies(std::vector<ScopeTally>& rows, std::vector<ScopeTally>& sums) {
  std::sort(rows.begin(), rows.end(), [](const ScopeTally& a, const ScopeTally& b) { return a.scope < b.scope; });
  for (const ScopeTally& row : rows) {
    if (sums.empty() || sums.back().scope != row.scope) sums.push_back({.scope = row.scope});
    ScopeTally& sum = sums.back();
    sum.count += row.count;
    sum.sampled_count += row.sampled_count;
    sum.wall_ns += row.wall_ns;
    sum.cpu_ns += row.cpu_ns;
    sum.helper_threads_cpu_ns += row.helper_threads_cpu_ns;
  }
}

}  // namespace joulemap::capture
