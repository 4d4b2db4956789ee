// SPDX-License-Identifier: Apache-2.0
//
// ThreadTrack: the scope stack of one thread and the time spent in each scope. The thread itself enters and leaves
// scopes; the capture's own thread calls add_time_since_last_update() every 10 or 50 ms and take_tallies() for the
// sums. A lock that is almost never contended protects the state. Callers pass the times (CLOCK_MONOTONIC nanoseconds),
// so that tests control the clock.
//
// Callers may pass the thread's CPU time at every edge (an entry to or exit from a scope) or only at ticks. CPU time
// since the last reading is split by wall time over the scopes of that interval.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <vector>

#include "model/activity.h"
#include "scopes/gpu_wait_attribution.h"

namespace joulemap::capture {

// Clocks at an edge or a tick.
struct ScopeChangeClocks {
  std::int64_t now_ns = 0;
  std::int64_t thread_cpu_ns = -1;         // CPU time of the thread; negative: not read now
  std::int64_t helper_threads_cpu_ns = 0;  // CPU time of untracked threads, credited to the current scope
  bool is_step_sampled = false;            // the current step is sampled
  bool is_scope_change_recorded = false;   // record this edge, to find what a GPU waited for
};

class ThreadTrack {
 public:
  ThreadTrack(std::int64_t now_ns, std::int64_t thread_cpu_ns, clockid_t cpu_clock)
      : cpu_clock_(cpu_clock),
        taken_cpu_ns_(thread_cpu_ns),
        last_update_ns_(now_ns),
        last_update_cpu_ns_(thread_cpu_ns) {}

  // Called by the tracked thread. enter() returns the depth before the entry; leave_to_depth() leaves all deeper
  // scopes.
  std::size_t enter(std::uint32_t scope, const ScopeChangeClocks& clocks);
  void leave_to_depth(std::size_t depth, const ScopeChangeClocks& clocks);
  // Replaces the innermost scope; no effect on an empty stack. ReentryCounting::counted counts a move to the same scope
  // as another entry; ReentryCounting::ignored does not.
  enum class ReentryCounting : std::uint8_t { ignored, counted };
  void replace_innermost_scope(std::uint32_t scope, const ScopeChangeClocks& clocks,
                               ReentryCounting entry = ReentryCounting::ignored);
  std::size_t scope_depth() const { return scope_stack_.size(); }
  // Sets the scope of the thread while its stack is empty: for an autograd thread, that of its backward work. Any
  // thread may reset it to 0.
  void set_base_scope(std::uint32_t scope, const ScopeChangeClocks& clocks,
                      ReentryCounting entry = ReentryCounting::ignored);
  std::uint32_t current_scope() const { return current_scope_.load(std::memory_order_relaxed); }

  // Called by the capture's thread: adds the time since the last edge or tick to the current scope.
  void add_time_since_last_update(const ScopeChangeClocks& clocks);
  // Appends the sums by scope (or the recorded edges) to `scope_tallies` and clears them.
  void take_tallies(std::vector<ScopeTally>& scope_tallies);
  void take_scope_changes(std::vector<HostScopeChange>& scope_changes);

  // Current CPU time of the thread in ns, readable from any thread; -1 once the thread has ended.
  std::int64_t read_cpu_ns() const;
  // Returns by how much cpu_ns, a CPU time of this thread, exceeds the largest one passed before; 0 if it does not. Any
  // thread.
  std::int64_t take_cpu_increase_ns(std::int64_t cpu_ns);
  void mark_thread_ended() { has_ended_.store(true); }  // the thread has ended
  bool has_ended() const { return has_ended_.load(); }

 private:
  struct PendingWallTime {
    std::uint32_t scope;
    std::int64_t wall_ns;
  };

  ScopeTally& find_or_add_tally(std::uint32_t scope);
  void add_elapsed_time(const ScopeChangeClocks& clocks);
  void distribute_cpu_time(std::int64_t cpu_ns);
  void count_scope_entry(std::uint32_t scope, bool is_sampled);
  void set_current_scope(std::uint32_t scope, const ScopeChangeClocks& clocks);
  std::uint32_t innermost_scope() const { return scope_stack_.empty() ? base_scope_ : scope_stack_.back(); }

  const clockid_t cpu_clock_;
  std::atomic<std::uint32_t> current_scope_{0};
  std::atomic<bool> has_ended_{false};
  std::atomic<std::int64_t> taken_cpu_ns_;

  std::mutex lock_;
  std::vector<std::uint32_t> scope_stack_;
  std::uint32_t base_scope_ = 0;
  std::int64_t last_update_ns_;
  std::int64_t last_update_cpu_ns_;
  std::vector<PendingWallTime> pending_wall_times_;  // wall time whose CPU time is still unknown
  std::vector<std::uint32_t> tally_index_;           // by scope id: index in tallies_ plus one
  std::vector<ScopeTally> tallies_;
  std::vector<HostScopeChange> host_scope_changes_;  // recorded since the last take_scope_changes()
};

// Adds up tallies of several threads by scope, in the order of scope ids.
void sum_scope_tallies(std::vector<ScopeTally>& rows, std::vector<ScopeTally>& sums);

}  // namespace joulemap::capture
