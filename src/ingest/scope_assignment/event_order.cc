// SPDX-License-Identifier: Apache-2.0
#include "ingest/scope_assignment/event_order.h"

#include <algorithm>
#include <array>
#include <utility>

namespace joulemap::ingest {
namespace {

// Nesting depth of each EventKind, for events with equal start and duration: the one with the smaller depth is the
// outer one.
int nesting_depth_of(EventKind kind) {
  constexpr std::array<int, 9> kNestingDepths = {3, 0, 1, 2, 4, 0, 0, 0, 0};
  return kNestingDepths[static_cast<std::size_t>(kind)];
}

bool is_outer_event(const TraceEvent& a, const TraceEvent& b) {
  if (a.duration_ns != b.duration_ns) return a.duration_ns > b.duration_ns;
  if (a.kind != b.kind) return nesting_depth_of(a.kind) < nesting_depth_of(b.kind);
  return a.external_id < b.external_id;
}

inline bool is_event_before(const TraceEvent& a, const TraceEvent& b) {
  return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : is_outer_event(a, b);
}

}  // namespace

EventOrder::EventOrder(Trace& trace) {
  threads_.resize(trace.threads.size());
  queues_.resize(trace.kernel_queues.size());
  index_event_blocks(trace);
  count_events(trace);
  group_by_track(trace);
}

void EventOrder::index_event_blocks(Trace& trace) {
  std::uint32_t events = 0;
  for (std::vector<TraceEvent>& block : trace.event_blocks) {
    if (block.empty()) continue;
    blocks_.push_back({block.data(), events});
    events += static_cast<std::uint32_t>(block.size());
  }
  blocks_.push_back({nullptr, events});
  sorted_event_numbers_.resize(events);
  block_of_event_range_.resize((events >> kBlockIndexShift) + std::size_t{1});
  for (std::size_t block = 0, range_index = 0; range_index < block_of_event_range_.size(); ++range_index) {
    while (block + 1 < blocks_.size() && blocks_[block + 1].first <= range_index << kBlockIndexShift) ++block;
    block_of_event_range_[range_index] = static_cast<std::uint32_t>(block);
  }
}

// Finds the number of events and the kinds of each track, and the extent of all. Updates a track once per sequence of
// its events, because consecutive events mostly belong to the same track.
void EventOrder::count_events(const Trace& trace) {
  constexpr std::int64_t kMinTime_ns = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMaxTime_ns = std::numeric_limits<std::int64_t>::max();
  TimeExtent extent{kMaxTime_ns, kMinTime_ns, kMinTime_ns, kMaxTime_ns, kMinTime_ns};
  for (const std::vector<TraceEvent>& block : trace.event_blocks) {
    for (std::size_t event_index = 0; event_index < block.size();) {
      const std::size_t run_begin = event_index;
      const std::uint32_t track = block[event_index].track_index;
      const bool on_gpu = is_on_gpu(block[event_index].kind);
      std::uint32_t kinds = 0;
      for (; event_index < block.size() && block[event_index].track_index == track &&
             is_on_gpu(block[event_index].kind) == on_gpu;
           ++event_index) {
        const TraceEvent& event = block[event_index];
        extent.first_start_ns = std::min(extent.first_start_ns, event.start_ns);
        extent.last_start_ns = std::max(extent.last_start_ns, event.start_ns);
        extent.end_ns = std::max(extent.end_ns, end_ns_of(event));
        extent.shortest_duration_ns = std::min(extent.shortest_duration_ns, event.duration_ns);
        extent.longest_duration_ns = std::max(extent.longest_duration_ns, event.duration_ns);
        kinds |= kind_mask(event.kind);
      }
      std::vector<TrackState>& tracks = on_gpu ? queues_ : threads_;
      if (track >= tracks.size()) tracks.resize(track + std::size_t{1});
      tracks[track].end += event_index - run_begin;
      tracks[track].kind_mask |= kinds;
    }
  }
  if (!sorted_event_numbers_.empty()) time_extent_ = extent;
}

// Groups the events by track, in file order: the counts of count_events() give each track its range in
// sorted_event_numbers_.
void EventOrder::group_by_track(const Trace& trace) {
  std::size_t sum = 0;
  for (std::vector<TrackState>* const tracks : {&threads_, &queues_}) {
    for (TrackState& track : *tracks) {
      sum += std::exchange(track.end, sum);
      track.sorted_run_begins.push_back(track.end);
    }
  }
  std::uint32_t number = 0;
  for (const std::vector<TraceEvent>& block : trace.event_blocks) {
    for (const TraceEvent& event : block) {
      TrackState& track = track_of(event);
      if (track.last_event != nullptr && is_event_before(event, *track.last_event) &&
          track.sorted_run_begins.size() <= kMaxSortedRuns) {
        if (insert_late_event(track, event, number)) {
          ++number;
          continue;
        }
        track.sorted_run_begins.push_back(track.end);
      }
      track.last_event = &event;
      sorted_event_numbers_[track.end++] = number++;
    }
  }
}

// Inserts a late event into the current run, behind events that precede or equal it. Returns false if it would move by
// more than kMaxInsertionDistance positions.
bool EventOrder::insert_late_event(TrackState& track, const TraceEvent& late_event, std::uint32_t number) {
  const std::size_t lowest_position =
      std::max(track.sorted_run_begins.back(), track.end - std::min(track.end, kMaxInsertionDistance));
  std::size_t insert_position = track.end - 1;  // the last one comes after `late_event`
  while (insert_position > lowest_position &&
         is_event_before(late_event, event(sorted_event_numbers_[insert_position - 1])))
    --insert_position;
  if (insert_position == lowest_position && lowest_position > track.sorted_run_begins.back()) return false;
  const auto position = sorted_event_numbers_.begin() + static_cast<std::ptrdiff_t>(insert_position);
  const auto end = sorted_event_numbers_.begin() + static_cast<std::ptrdiff_t>(track.end++);
  std::copy_backward(position, end, end + 1);
  *position = number;
  return true;
}

void EventOrder::sort(std::size_t begin, std::vector<TrackState>& tracks) {
  std::vector<std::uint32_t> scratch;
  for (TrackState& track : tracks) {
    std::vector<std::size_t>& runs = track.sorted_run_begins;
    if (runs.size() > kMaxSortedRuns) {
      const std::span<std::uint32_t> track_events = std::span(sorted_event_numbers_).subspan(begin, track.end - begin);
      sort_outer_first(track_events, scratch);
      find_sorted_runs(begin, track);
      if (runs.size() > kMaxSortedRuns) {
        const auto is_before = [this](std::uint32_t a, std::uint32_t b) { return is_event_before(event(a), event(b)); };
        std::sort(track_events.begin(), track_events.end(), is_before);
        runs.resize(1);
      }
    }
    while (runs.size() > 1) {
      std::vector<std::size_t> merged_run_begins;
      for (std::size_t i = 0; i < runs.size(); i += 2) {
        merged_run_begins.push_back(runs[i]);
        if (i + 1 == runs.size()) break;
        const std::size_t end = i + 2 < runs.size() ? runs[i + 2] : track.end;
        merge_sorted_runs(std::span(sorted_event_numbers_).subspan(runs[i], end - runs[i]), runs[i + 1] - runs[i],
                          scratch);
      }
      runs = std::move(merged_run_begins);
    }
    begin = track.end;
  }
}

void EventOrder::find_sorted_runs(std::size_t begin, TrackState& track) const {
  track.sorted_run_begins = {begin};
  for (std::size_t i = begin + 1; i < track.end && track.sorted_run_begins.size() <= kMaxSortedRuns; ++i) {
    if (is_event_before(event(sorted_event_numbers_[i]), event(sorted_event_numbers_[i - 1])))
      track.sorted_run_begins.push_back(i);
  }
}

// Some profilers write a function when it ends, after the functions that it called, which creates one run for each
// function. An event that sorts before the preceding ones in the file encloses them and is moved before them. Linked
// lists hold the order, which is written out at the end.
void EventOrder::sort_outer_first(std::span<std::uint32_t> track, std::vector<std::uint32_t>& scratch) const {
  struct EnclosedEvents {  // the events from `first` to `last`; `first` encloses the others
    std::uint32_t first;
    std::uint32_t last;
  };
  std::vector<EnclosedEvents> outermost_groups;
  scratch.resize(track.size());  // for each event, the position of the next one in the track
  for (std::uint32_t i = 0; i < track.size(); ++i) {
    EnclosedEvents enclosing_group{i, i};
    const TraceEvent& latest_event = event(track[i]);
    std::size_t inner_begin = outermost_groups.size();
    while (inner_begin > 0 && is_event_before(latest_event, event(track[outermost_groups[inner_begin - 1].first])))
      --inner_begin;
    for (std::size_t inner_index = inner_begin; inner_index < outermost_groups.size(); ++inner_index) {
      scratch[enclosing_group.last] = outermost_groups[inner_index].first;
      enclosing_group.last = outermost_groups[inner_index].last;
    }
    outermost_groups.resize(inner_begin);
    outermost_groups.push_back(enclosing_group);
  }
  std::vector<std::uint32_t> ordered_events;
  ordered_events.reserve(track.size());
  for (const EnclosedEvents& event_group : outermost_groups) {
    for (std::uint32_t track_position = event_group.first; track_position != event_group.last;
         track_position = scratch[track_position])
      ordered_events.push_back(track[track_position]);
    ordered_events.push_back(track[event_group.last]);
  }
  std::copy(ordered_events.begin(), ordered_events.end(), track.begin());
}

// Merges two adjacent sorted runs. Reads each event once.
void EventOrder::merge_sorted_runs(std::span<std::uint32_t> adjacent_runs, std::size_t second_run_begin,
                                   std::vector<std::uint32_t>& scratch) const {
  scratch.assign(adjacent_runs.begin(), adjacent_runs.begin() + static_cast<std::ptrdiff_t>(second_run_begin));
  std::size_t left_index = 0;
  std::size_t right_index = second_run_begin;
  const TraceEvent* left_event = &event(scratch[0]);
  const TraceEvent* right_event = &event(adjacent_runs[second_run_begin]);
  for (std::size_t output_index = 0; left_index < scratch.size(); ++output_index) {
    if (right_event != nullptr && is_event_before(*right_event, *left_event)) {
      adjacent_runs[output_index] = adjacent_runs[right_index++];
      right_event = right_index < adjacent_runs.size() ? &event(adjacent_runs[right_index]) : nullptr;
    } else {
      adjacent_runs[output_index] = scratch[left_index++];
      if (left_index < scratch.size()) left_event = &event(scratch[left_index]);
    }
  }
}

namespace {

constexpr auto starts_later = [](const auto& a, const auto& b) {
  return a.start_ns != b.start_ns ? a.start_ns > b.start_ns : a.track > b.track;
};

}  // namespace

TrackMerger::TrackMerger(const EventOrder& order, std::vector<EventOrder::Track> tracks)
    : order_(order), tracks_(std::move(tracks)) {
  for (std::uint32_t i = 0; i < tracks_.size(); ++i) {
    if (tracks_[i].empty()) continue;
    TraceEvent* const first_event = &order_.event(tracks_[i].front());
    head_heap_.push_back({first_event->start_ns, first_event, i});
  }
  std::make_heap(head_heap_.begin(), head_heap_.end(), starts_later);
}

// Consecutive events mostly come from the same track, so a batch is taken from the earliest track.
std::span<TraceEvent* const> TrackMerger::next_batch() {
  if (head_heap_.empty()) return {};
  EventOrder::Track& remaining_track = tracks_[head_heap_.front().track];
  std::int64_t next_track_start_ns = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 1; i < std::min<std::size_t>(head_heap_.size(), 3); ++i) {
    next_track_start_ns = std::min(next_track_start_ns, head_heap_[i].start_ns);
  }
  std::size_t count = 0;
  const std::size_t max_batch_size = std::min(kBatchSize, remaining_track.size());
  TraceEvent* event = head_heap_.front().event;
  do {
    events_[count++] = event;
    event = count < remaining_track.size() ? &order_.event(remaining_track[count]) : nullptr;
  } while (count < max_batch_size && event->start_ns < next_track_start_ns);
  remaining_track = remaining_track.subspan(count);
  std::pop_heap(head_heap_.begin(), head_heap_.end(), starts_later);
  if (remaining_track.empty()) {
    head_heap_.pop_back();
  } else {
    head_heap_.back().start_ns = event->start_ns;
    head_heap_.back().event = event;
    std::push_heap(head_heap_.begin(), head_heap_.end(), starts_later);
  }
  return std::span(events_).first(count);
}

}  // namespace joulemap::ingest
