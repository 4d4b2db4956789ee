// SPDX-License-Identifier: Apache-2.0
//
// EventOrder: an index of the events of a Trace, track by track in time order; the events are not moved. Files are
// nearly sorted: each thread and queue has a few sorted runs, which are merged. Within a run some events are a few
// positions late. Uses 4 bytes per event, and 4 more while merging. Borrows the trace; single-threaded except where
// noted.
//
// Of events with the same start, the longer one is the outer one. Of equally long ones, the outer one is decided by
// kind (annotation, module, function, op, api), then by the smaller external id.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ingest/trace.h"

namespace joulemap::ingest {

// End of an event in ns. Damaged files contain arbitrary numbers: the sum saturates instead of overflowing.
inline std::int64_t end_ns_of(const TraceEvent& event) {
  if (event.duration_ns <= 0) return event.start_ns;
  constexpr std::int64_t kMaxTime_ns = std::numeric_limits<std::int64_t>::max();
  return event.start_ns > kMaxTime_ns - event.duration_ns ? kMaxTime_ns : event.start_ns + event.duration_ns;
}

// Times of all events; zeros if there are none.
struct TimeExtent {
  std::int64_t first_start_ns = 0;
  std::int64_t last_start_ns = 0;
  std::int64_t end_ns = 0;  // latest end of an event
  std::int64_t shortest_duration_ns = 0;
  std::int64_t longest_duration_ns = 0;
};

class EventOrder {
 public:
  // Groups the events by thread and queue. Threads are in time order after sort_threads(), queues after sort_queues().
  explicit EventOrder(Trace& trace);
  // sort_threads() and sort_queues() may run concurrently.
  void sort_threads() { sort(0, threads_); }
  void sort_queues() { sort(threads_.empty() ? 0 : threads_.back().end, queues_); }

  const TimeExtent& time_extent() const { return time_extent_; }

  using Track = std::span<const std::uint32_t>;  // event numbers
  std::size_t thread_count() const { return threads_.size(); }
  Track thread(std::size_t number) const { return track(0, threads_, number); }
  bool thread_has_kind(std::size_t number, EventKind kind) const {
    return (threads_[number].kind_mask & kind_mask(kind)) != 0;
  }
  std::size_t queue_count() const { return queues_.size(); }
  Track queue(std::size_t number) const { return track(threads_.empty() ? 0 : threads_.back().end, queues_, number); }

  // Events are numbered from 0, in the order of the blocks.
  TraceEvent& event(std::uint32_t number) const {
    const Block* block = &blocks_[block_of_event_range_[number >> kBlockIndexShift]];
    while (number >= block[1].first) ++block;
    return block->events[number - block->first];
  }

 private:
  static constexpr unsigned kBlockIndexShift = 8;
  // Above this number of runs, a full sort is faster than merging.
  static constexpr std::size_t kMaxSortedRuns = 64;
  // Largest number of positions that an out-of-order event is moved back immediately.
  static constexpr std::size_t kMaxInsertionDistance = 32;

  struct Block {
    TraceEvent* events;
    std::uint32_t first;  // event number
  };
  struct TrackState {
    std::size_t end = 0;          // end of the track in sorted_event_numbers_
    std::uint32_t kind_mask = 0;  // bit set of the EventKinds on the track
    std::vector<std::size_t>
        sorted_run_begins;  // starts of the sorted runs in sorted_event_numbers_, kMaxSortedRuns + 1 at most
    const TraceEvent* last_event = nullptr;  // last event of the current run, during construction
  };

  Track track(std::size_t first_track_begin, const std::vector<TrackState>& tracks, std::size_t number) const {
    const std::size_t begin = number == 0 ? first_track_begin : tracks[number - 1].end;
    return Track(sorted_event_numbers_).subspan(begin, tracks[number].end - begin);
  }
  static std::uint32_t kind_mask(EventKind kind) { return std::uint32_t{1} << static_cast<unsigned>(kind); }
  TrackState& track_of(const TraceEvent& event) {
    return (is_on_gpu(event.kind) ? queues_ : threads_)[event.track_index];
  }
  void index_event_blocks(Trace& trace);
  void count_events(const Trace& trace);
  void group_by_track(const Trace& trace);
  bool insert_late_event(TrackState& track, const TraceEvent& late_event, std::uint32_t number);
  void sort(std::size_t begin, std::vector<TrackState>& tracks);
  void find_sorted_runs(std::size_t begin, TrackState& track) const;
  void sort_outer_first(std::span<std::uint32_t> track, std::vector<std::uint32_t>& scratch) const;
  void merge_sorted_runs(std::span<std::uint32_t> adjacent_runs, std::size_t second_run_begin,
                         std::vector<std::uint32_t>& scratch) const;

  std::vector<Block> blocks_;                        // ends with a sentinel that has no events
  std::vector<std::uint32_t> block_of_event_range_;  // block index of every 256th event
  std::vector<std::uint32_t> sorted_event_numbers_;  // event numbers by thread, then by queue
  std::vector<TrackState> threads_;
  std::vector<TrackState> queues_;
  TimeExtent time_extent_;
};

// Merges several tracks in time order. Of events with the same start, the one of the track with the lower index is
// first.
class TrackMerger {
 public:
  TrackMerger(const EventOrder& order, std::vector<EventOrder::Track> tracks);
  // Returns the next events, up to kBatchSize; empty at the end. Valid until the next call.
  std::span<TraceEvent* const> next_batch();

 private:
  static constexpr std::size_t kBatchSize = 64;
  struct TrackHead {
    std::int64_t start_ns;
    TraceEvent* event;  // next event of the track
    std::uint32_t track;
  };

  const EventOrder& order_;
  std::vector<EventOrder::Track> tracks_;  // remaining events of each track
  std::vector<TrackHead> head_heap_;       // heap, earliest start first
  std::array<TraceEvent*, kBatchSize> events_{};
};

}  // namespace joulemap::ingest
