// SPDX-License-Identifier: Apache-2.0
//
// EventOrder: the events of a Trace, track by track in order of time, where they lie. Files hold them nearly so: a few
// sorted runs of each thread and queue, which are merged; within a run some stand a few places too late. 4 bytes an event,
// and 4 more while they are merged. Borrows the trace; one thread, but for what is told.
//
// Of events that begin together the longer one is the outer one; of equally long ones that which the framework numbered
// first.
#pragma once

#include <array>
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

// Of all events; where there are none, zeros.
struct TimeExtent {
  std::int64_t begin_ns = 0;  // the first one begins
  std::int64_t last_ns = 0;   // the last one begins
  std::int64_t end_ns = 0;
  std::int64_t shortest_ns = 0;
  std::int64_t longest_ns = 0;
};

class EventOrder {
 public:
  // Knows the tracks; each kind of them is in order of time once it was sorted.
  explicit EventOrder(Trace& trace);
  // Two threads may do one each.
  void sort_threads() { sort(0, threads_); }
  void sort_queues() { sort(threads_.empty() ? 0 : threads_.back().end, queues_); }

  const TimeExtent& extent() const { return extent_; }

  using Track = std::span<const std::uint32_t>;  // numbers of events
  std::size_t threads() const { return threads_.size(); }
  Track thread(std::size_t number) const { return track(0, threads_, number); }
  bool thread_has(std::size_t number, EventKind kind) const { return (threads_[number].kinds & bit_of(kind)) != 0; }
  std::size_t queues() const { return queues_.size(); }
  Track queue(std::size_t number) const { return track(threads_.empty() ? 0 : threads_.back().end, queues_, number); }

  // Numbered as they lie in the blocks.
  TraceEvent& event(std::uint32_t number) const {
    const Block* block = &blocks_[block_of_[number >> kShift]];
    while (number >= block[1].first) ++block;
    return block->events[number - block->first];
  }

 private:
  static constexpr unsigned kShift = 8;
  // More runs than this, and sorting anew is quicker than merging.
  static constexpr std::size_t kMostRuns = 64;
  // How far back in its run an event is put at once.
  static constexpr std::size_t kFarthestBack = 32;

  struct Block {
    TraceEvent* events;
    std::uint32_t first;  // number
  };
  struct TrackEnd {
    std::size_t end = 0;               // in order_
    std::uint32_t kinds = 0;           // of its events
    std::vector<std::size_t> runs;     // where sorted ones begin in order_, kMostRuns + 1 at most
    const TraceEvent* last = nullptr;  // while they are made
  };

  Track track(std::size_t first, const std::vector<TrackEnd>& tracks, std::size_t number) const {
    const std::size_t begin = number == 0 ? first : tracks[number - 1].end;
    return Track(order_).subspan(begin, tracks[number].end - begin);
  }
  static std::uint32_t bit_of(EventKind kind) { return std::uint32_t{1} << static_cast<unsigned>(kind); }
  TrackEnd& track_of(const TraceEvent& event) { return (is_on_gpu(event.kind) ? queues_ : threads_)[event.track]; }
  void find_blocks(Trace& trace);
  void count(const Trace& trace);
  void group(const Trace& trace);
  bool put_back(TrackEnd& track, const TraceEvent& late, std::uint32_t number);
  void sort(std::size_t begin, std::vector<TrackEnd>& tracks);
  void find_runs(std::size_t begin, TrackEnd& track) const;
  void put_outer_first(std::span<std::uint32_t> track, std::vector<std::uint32_t>& room) const;
  void merge(std::span<std::uint32_t> both, std::size_t middle, std::vector<std::uint32_t>& room) const;

  std::vector<Block> blocks_;            // and one that holds none
  std::vector<std::uint32_t> block_of_;  // of every 256th event
  std::vector<std::uint32_t> order_;     // by thread, then by queue
  std::vector<TrackEnd> threads_;
  std::vector<TrackEnd> queues_;
  TimeExtent extent_;
};

// Several tracks in order of time; of events that begin together that of the first track comes first.
class TimeMerge {
 public:
  TimeMerge(const EventOrder& order, std::vector<EventOrder::Track> tracks);
  // Some of those that come next; none at the end.
  std::span<TraceEvent* const> next();

 private:
  static constexpr std::size_t kMostAtOnce = 64;
  struct Head {
    std::int64_t start_ns;
    TraceEvent* event;  // the next one of the track
    std::uint32_t track;
  };

  const EventOrder& order_;
  std::vector<EventOrder::Track> tracks_;  // what is left of each
  std::vector<Head> heads_;                // a heap, the earliest first
  std::array<TraceEvent*, kMostAtOnce> events_{};
};

}  // namespace joulemap::ingest
