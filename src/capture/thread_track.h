// SPDX-License-Identifier: Apache-2.0
//
// ThreadTrack: the scope stack of one thread and the time spent in each scope. The thread itself enters and leaves
// scopes; the capture's own thread calls tick() every 10 ms and take() for the sums. A lock that is almost never
// contended protects them. Callers pass the times (CLOCK_MONOTONIC nanoseconds), so that tests control the clock.
//
// In exact mode the caller reads CPU time at every edge; otherwise at every tick, and it is split by wall time.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <vector>

#include "model/activity.h"
#include "scopes/gpu_waiting.h"

namespace joulemap::capture {

// Clocks at an edge (an entry to or exit from a scope). A negative CPU time is unknown and is split later.
struct EdgeClocks {
  std::int64_t now_ns = 0;
  std::int64_t thread_cpu_ns = -1;
  std::int64_t helper_threads_ns = 0;  // CPU time of untracked threads since the last edge, if this thread leads
  bool sampled = false;                // the current step is sampled
  bool traced = false;                 // edges are recorded, to find what a GPU waited for
};

class ThreadTrack {
 public:
  ThreadTrack(std::int64_t now_ns, std::int64_t thread_cpu_ns, clockid_t cpu_clock)
      : cpu_clock_(cpu_clock), counted_cpu_ns_(thread_cpu_ns), last_ns_(now_ns), last_cpu_ns_(thread_cpu_ns) {}

  // Called by the tracked thread. enter() returns the depth before the entry.
  std::size_t enter(std::uint32_t scope, const EdgeClocks& clocks);
  void leave_to(std::size_t depth, const EdgeClocks& clocks);
  // Replaces the innermost scope. Entry::each counts a move to the same scope as another entry; Entry::once does not.
  enum class EntryCounting : std::uint8_t { once, each };
  void replace_innermost(std::uint32_t scope, const EdgeClocks& clocks, EntryCounting entry = EntryCounting::once);
  std::size_t depth() const { return stack_.size(); }
  // Sets the scope beneath the whole stack: one lent by the thread this one works for. Any thread may reset it with 0.
  void set_base_scope(std::uint32_t scope, const EdgeClocks& clocks, EntryCounting entry = EntryCounting::once);
  std::uint32_t current_scope() const { return current_scope_.load(std::memory_order_relaxed); }

  // Called by the capture's thread: accounts the time so far, as at an edge.
  void tick(const EdgeClocks& clocks);
  // Appends the sums by scope to `into` and resets them.
  void take(std::vector<ScopeTally>& into);
  void take_edges(std::vector<HostEdge>& into);

  // CPU time of the thread, readable from any thread; negative once it has ended.
  std::int64_t read_cpu_ns() const;
  // Returns the increase of that since the last call; callable from any thread.
  std::int64_t advance_cpu(std::int64_t cpu_ns);
  void end() { ended_.store(true); }  // the thread has ended
  bool ended() const { return ended_.load(); }

 private:
  struct PendingTime {
    std::uint32_t scope;
    std::int64_t wall_ns;
  };

  ScopeTally& tally(std::uint32_t scope);
  void account_time(const EdgeClocks& clocks);
  void distribute_cpu_time(std::int64_t cpu_ns);
  void count_entry(std::uint32_t scope, bool sampled);
  void set_current_scope(std::uint32_t scope, const EdgeClocks& clocks);
  std::uint32_t top() const { return stack_.empty() ? base_scope_ : stack_.back(); }

  const clockid_t cpu_clock_;
  std::atomic<std::uint32_t> current_scope_{0};
  std::atomic<bool> ended_{false};
  std::atomic<std::int64_t> counted_cpu_ns_;

  std::mutex lock_;
  std::vector<std::uint32_t> stack_;
  std::uint32_t base_scope_ = 0;
  std::int64_t last_ns_;
  std::int64_t last_cpu_ns_;
  std::vector<PendingTime> pending_;        // wall time whose CPU time is still unknown
  std::vector<std::uint32_t> tally_index_;  // by scope id: index in tallies_ plus one
  std::vector<ScopeTally> tallies_;
  std::vector<HostEdge> edges_;  // since the last take_edges, while traced
};

// Adds up tallies of several threads by scope, in the order of scope ids.
void sum_tallies(std::vector<ScopeTally>& rows, std::vector<ScopeTally>& sums);

}  // namespace joulemap::capture
