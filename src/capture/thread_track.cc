// SPDX-License-Identifier: Apache-2.0
#include "capture/thread_track.h"

#include <algorithm>

#include "base/clock.h"

namespace joulemap::capture {

ScopeTally& ThreadTrack::tally(std::uint32_t scope) {
  if (scope >= row_of_.size()) row_of_.resize(scope + std::size_t{1});
  if (row_of_[scope] == 0) {
    tallies_.push_back({.scope = scope});
    row_of_[scope] = static_cast<std::uint32_t>(tallies_.size());
  }
  return tallies_[row_of_[scope] - 1];
}

// Splits newly known CPU time over the pending scopes by wall time.
void ThreadTrack::settle_cpu(std::int64_t cpu_ns) {
  std::int64_t wall_ns = 0;
  for (const Pending& some : pending_) wall_ns += some.wall_ns;
  std::int64_t left_ns = cpu_ns;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const bool last = i + 1 == pending_.size();
    const double share = wall_ns > 0 ? static_cast<double>(pending_[i].wall_ns) / static_cast<double>(wall_ns) : 0;
    const std::int64_t part_ns = last ? left_ns : static_cast<std::int64_t>(share * static_cast<double>(cpu_ns));
    tally(pending_[i].scope).cpu_ns += part_ns;
    left_ns -= part_ns;
  }
  pending_.clear();
}

void ThreadTrack::pass_time(const EdgeClocks& clocks) {
  const std::uint32_t scope = top();
  const std::int64_t wall_ns = std::max(clocks.now_ns - last_ns_, std::int64_t{0});
  last_ns_ = std::max(clocks.now_ns, last_ns_);
  ScopeTally& here = tally(scope);
  here.wall_ns += wall_ns;
  here.helpers_ns += clocks.helpers_ns;
  if (!pending_.empty() && pending_.back().scope == scope) {
    pending_.back().wall_ns += wall_ns;
  } else {
    pending_.push_back({scope, wall_ns});
  }
  if (clocks.thread_cpu_ns < 0) return;
  settle_cpu(std::max(clocks.thread_cpu_ns - last_cpu_ns_, std::int64_t{0}));
  last_cpu_ns_ = std::max(clocks.thread_cpu_ns, last_cpu_ns_);
}

void ThreadTrack::count_entry(std::uint32_t scope, bool sampled) {
  ScopeTally& entered = tally(scope);
  ++entered.count;
  if (sampled) ++entered.sampled;
}

void ThreadTrack::stand_at(std::uint32_t scope) { here_.store(scope, std::memory_order_relaxed); }

std::size_t ThreadTrack::enter(std::uint32_t scope, const EdgeClocks& clocks) {
  const std::lock_guard lock(lock_);
  pass_time(clocks);
  stack_.push_back(scope);
  count_entry(scope, clocks.sampled);
  stand_at(scope);
  return stack_.size() - 1;
}

void ThreadTrack::leave_to(std::size_t depth, const EdgeClocks& clocks) {
  const std::lock_guard lock(lock_);
  if (depth >= stack_.size()) return;
  pass_time(clocks);
  stack_.resize(depth);
  stand_at(top());
}

void ThreadTrack::move_to(std::uint32_t scope, const EdgeClocks& clocks, Entry entry) {
  const std::lock_guard lock(lock_);
  if (stack_.empty() || (stack_.back() == scope && entry == Entry::once)) return;
  pass_time(clocks);
  stack_.back() = scope;
  count_entry(scope, clocks.sampled);
  stand_at(scope);
}

void ThreadTrack::lend(std::uint32_t scope, const EdgeClocks& clocks, Entry entry) {
  const std::lock_guard lock(lock_);
  if (lent_ == scope && entry == Entry::once) return;
  pass_time(clocks);
  lent_ = scope;
  if (scope != 0) count_entry(scope, clocks.sampled);
  stand_at(top());
}

void ThreadTrack::tick(const EdgeClocks& clocks) {
  const std::lock_guard lock(lock_);
  pass_time(clocks);
}

std::int64_t ThreadTrack::read_cpu_ns() const {
  timespec now{};
  if (clock_gettime(cpu_clock_, &now) != 0) return -1;
  return static_cast<std::int64_t>(now.tv_sec) * kNanosecondsPerSecond + now.tv_nsec;
}

std::int64_t ThreadTrack::advance_cpu(std::int64_t cpu_ns) {
  std::int64_t told_ns = told_cpu_ns_.load(std::memory_order_relaxed);
  while (cpu_ns > told_ns) {
    if (told_cpu_ns_.compare_exchange_weak(told_ns, cpu_ns, std::memory_order_relaxed)) return cpu_ns - told_ns;
  }
  return 0;
}

void ThreadTrack::take(std::vector<ScopeTally>& into) {
  const std::lock_guard lock(lock_);
  for (const ScopeTally& mine : tallies_) {
    row_of_[mine.scope] = 0;
    if (mine.count == 0 && mine.wall_ns == 0 && mine.cpu_ns == 0 && mine.helpers_ns == 0) continue;
    into.push_back(mine);
  }
  tallies_.clear();
}

void add_up(std::vector<ScopeTally>& rows, std::vector<ScopeTally>& sums) {
  std::sort(rows.begin(), rows.end(), [](const ScopeTally& a, const ScopeTally& b) { return a.scope < b.scope; });
  for (const ScopeTally& row : rows) {
    if (sums.empty() || sums.back().scope != row.scope) sums.push_back({.scope = row.scope});
    ScopeTally& sum = sums.back();
    sum.count += row.count;
    sum.sampled += row.sampled;
    sum.wall_ns += row.wall_ns;
    sum.cpu_ns += row.cpu_ns;
    sum.helpers_ns += row.helpers_ns;
  }
}

}  // namespace joulemap::capture
