// SPDX-License-Identifier: Apache-2.0
//
// EventOrder: the events of a Trace, track by track in order of time, where they lie. Files hold them nearly so: a few
// sorted runs of each thread and queue, which are merged. 4 bytes an event. Borrows the trace; one thread.
//
// Of events that begin together the longer one is the outer one; of equally long ones that which the framework numbered
// first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ingest/trace.h"

namespace joulemap::ingest {

// Damaged files hold any number: no sum overflows.
inline std::int64_t end_of(const TraceEvent& event) {
  if (event.duration_ns <= 0) return event.start_ns;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return event.start_ns > kMost - event.duration_ns ? kMost : event.start_ns + event.duration_ns;
}

class EventOrder {
 public:
  explicit EventOrder(Trace& trace);

  using Track = std::span<const std::uint32_t>;  // numbers of events
  std::size_t threads() const { return thread_ends_.size(); }
  Track thread(std::size_t number) const { return track(0, thread_ends_, number); }
  std::size_t queues() const { return queue_ends_.size(); }
  Track queue(std::size_t number) const {
    return track(thread_ends_.empty() ? 0 : thread_ends_.back(), queue_ends_, number);
  }

  TraceEvent& event(std::uint32_t number) {
    std::size_t block = block_of_[number >> kShift];
    while (number >= first_[block + 1]) ++block;
    return (*blocks_)[block][number - first_[block]];
  }

 private:
  static constexpr unsigned kShift = 8;

  Track track(std::size_t first, const std::vector<std::size_t>& ends, std::size_t number) const {
    const std::size_t begin = number == 0 ? first : ends[number - 1];
    return Track(order_).subspan(begin, ends[number] - begin);
  }
  void group();
  void sort(std::span<std::uint32_t> track);

  std::vector<std::vector<TraceEvent>>* blocks_;
  std::vector<std::uint32_t> first_;     // by block: the number of its first event
  std::vector<std::uint32_t> block_of_;  // of every 256th event
  std::vector<std::uint32_t> order_;     // by thread, then by queue
  std::vector<std::size_t> thread_ends_;
  std::vector<std::size_t> queue_ends_;
};

// Several tracks in order of time.
class TimeMerge {
 public:
  TimeMerge(EventOrder& order, std::vector<EventOrder::Track> tracks);
  TraceEvent* next();  // null at the end

 private:
  struct Head {
    std::int64_t start_ns;
    std::uint32_t track;
  };

  EventOrder& order_;
  std::vector<EventOrder::Track> tracks_;  // what is left of each
  std::vector<Head> heads_;                // a heap, the earliest first
};

}  // namespace joulemap::ingest
