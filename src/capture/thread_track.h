// SPDX-License-Identifier: Apache-2.0
//
// ThreadTrack: where one thread is, and how long it was where. The thread itself enters and leaves; the capture's own
// thread looks in every 10 ms (tick) and fetches the sums (take). A lock that is almost never contended lies between them.
// Times are CLOCK_MONOTONIC nanoseconds and are given, not read, so that tests can say what time it is.
//
// CPU time is read at every edge when that is asked for (exact), else at every tick and shared out by wall time.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <vector>

#include "model/activity.h"

namespace joulemap::capture {

// The clocks at an edge. CPU times may be missing (negative): then they are shared out later.
struct EdgeClocks {
  std::int64_t now_ns = 0;
  std::int64_t thread_cpu_ns = -1;
  std::int64_t helpers_ns = 0;  // CPU time of other threads since the last edge, if it is this thread they work for
  bool sampled = false;         // the present step's operations are told, too
};

class ThreadTrack {
 public:
  ThreadTrack(std::int64_t now_ns, std::int64_t thread_cpu_ns, clockid_t cpu_clock)
      : cpu_clock_(cpu_clock), told_cpu_ns_(thread_cpu_ns), last_ns_(now_ns), last_cpu_ns_(thread_cpu_ns) {}

  // Of this thread. Depths count what was entered.
  std::size_t enter(std::uint32_t place, const EdgeClocks& clocks);
  void leave_to(std::size_t depth, const EdgeClocks& clocks);
  // In place of what was entered last.
  // Whether being told the same place again is entering it again.
  enum class Entry : std::uint8_t { once, each };
  void move_to(std::uint32_t place, const EdgeClocks& clocks, Entry entry = Entry::once);
  std::size_t depth() const { return stack_.size(); }
  // What lies beneath everything that was entered: a place lent by the thread this one works for.
  // Any thread may take it back (0).
  void lend(std::uint32_t place, const EdgeClocks& clocks, Entry entry = Entry::once);
  std::uint32_t here() const { return here_.load(std::memory_order_relaxed); }

  // Of the capture's thread: as if an edge lay here.
  void tick(const EdgeClocks& clocks);
  // Adds the sums to `into`, place by place, and forgets them.
  void take(std::vector<PlaceTally>& into);

  // CPU time of the thread, read from any other; negative once it is gone.
  std::int64_t read_cpu_ns() const;
  // How much of that is new since the last call, from whatever thread.
  std::int64_t advance_cpu(std::int64_t cpu_ns);
  void end() { ended_.store(true); }  // its thread is gone
  bool ended() const { return ended_.load(); }

 private:
  struct Pending {
    std::uint32_t place;
    std::int64_t wall_ns;
  };

  PlaceTally& tally(std::uint32_t place);
  void pass_time(const EdgeClocks& clocks);
  void settle_cpu(std::int64_t cpu_ns);
  void count_entry(std::uint32_t place, bool sampled);
  void stand_at(std::uint32_t place);
  std::uint32_t top() const { return stack_.empty() ? lent_ : stack_.back(); }

  const clockid_t cpu_clock_;
  std::atomic<std::uint32_t> here_{0};
  std::atomic<bool> ended_{false};
  std::atomic<std::int64_t> told_cpu_ns_;

  std::mutex lock_;
  std::vector<std::uint32_t> stack_;
  std::uint32_t lent_ = 0;
  std::int64_t last_ns_;
  std::int64_t last_cpu_ns_;
  std::vector<Pending> pending_;       // wall time whose CPU time is not known yet
  std::vector<std::uint32_t> row_of_;  // by place: its row in tallies_, plus one
  std::vector<PlaceTally> tallies_;
};

// Rows of several threads, one for each place, in the order of places.
void add_up(std::vector<PlaceTally>& rows, std::vector<PlaceTally>& sums);

}  // namespace joulemap::capture
