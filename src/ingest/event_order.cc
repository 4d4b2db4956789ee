// SPDX-License-Identifier: Apache-2.0
#include "ingest/event_order.h"

#include <algorithm>
#include <array>

namespace joulemap::ingest {
namespace {

// More runs than this, and sorting anew is quicker than merging.
constexpr std::size_t kMostRuns = 64;

// What encloses the other, where times do not tell.
int depth_of(EventKind kind) {
  constexpr std::array<int, 9> kDepths = {3, 0, 1, 2, 4, 0, 0, 0, 0};
  return kDepths[static_cast<std::size_t>(kind)];
}

bool comes_before(const TraceEvent& a, const TraceEvent& b) {
  if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
  if (a.duration_ns != b.duration_ns) return a.duration_ns > b.duration_ns;
  if (a.kind != b.kind) return depth_of(a.kind) < depth_of(b.kind);
  return a.external < b.external;
}

}  // namespace

EventOrder::EventOrder(Trace& trace) : blocks_(&trace.blocks) {
  std::size_t threads = trace.threads.size();
  std::size_t queues = trace.queues.size();
  first_.push_back(0);
  for (const std::vector<TraceEvent>& block : trace.blocks) {
    first_.push_back(first_.back() + static_cast<std::uint32_t>(block.size()));
    for (const TraceEvent& event : block) {
      std::size_t& tracks = is_on_gpu(event.kind) ? queues : threads;
      tracks = std::max(tracks, event.track + std::size_t{1});
    }
  }
  thread_ends_.resize(threads);
  queue_ends_.resize(queues);
  group();
  std::size_t begin = 0;
  for (const std::vector<std::size_t>* const ends : {&thread_ends_, &queue_ends_}) {
    for (const std::size_t end : *ends) {
      sort(std::span(order_).subspan(begin, end - begin));
      begin = end;
    }
  }
}

// By track, in the order of the file: counts first, then each goes to its place.
void EventOrder::group() {
  const std::uint32_t events = first_.back();
  block_of_.resize((events >> kShift) + std::size_t{1});
  for (std::size_t block = 0, at = 0; at < block_of_.size(); ++at) {
    while (block + 2 < first_.size() && first_[block + 1] <= at << kShift) ++block;
    block_of_[at] = static_cast<std::uint32_t>(block);
  }
  for (const std::vector<TraceEvent>& block : *blocks_) {
    for (const TraceEvent& event : block) ++(is_on_gpu(event.kind) ? queue_ends_ : thread_ends_)[event.track];
  }
  std::size_t sum = 0;
  std::vector<std::size_t> thread_next;
  std::vector<std::size_t> queue_next;
  for (auto [ends, next] : {std::pair(&thread_ends_, &thread_next), std::pair(&queue_ends_, &queue_next)}) {
    for (std::size_t& count : *ends) {
      next->push_back(sum);
      sum += count;
      count = sum;
    }
  }
  order_.resize(events);
  std::uint32_t number = 0;
  for (const std::vector<TraceEvent>& block : *blocks_) {
    for (const TraceEvent& event : block) {
      order_[(is_on_gpu(event.kind) ? queue_next : thread_next)[event.track]++] = number++;
    }
  }
}

void EventOrder::sort(std::span<std::uint32_t> track) {
  const auto before = [this](std::uint32_t a, std::uint32_t b) { return comes_before(event(a), event(b)); };
  std::vector<std::size_t> runs = {0};
  for (std::size_t i = 1; i < track.size() && runs.size() <= kMostRuns; ++i) {
    if (before(track[i], track[i - 1])) runs.push_back(i);
  }
  if (runs.size() > kMostRuns) {
    std::sort(track.begin(), track.end(), before);
    return;
  }
  const auto at = [&](std::size_t position) { return track.begin() + static_cast<std::ptrdiff_t>(position); };
  runs.push_back(track.size());
  while (runs.size() > 2) {
    std::vector<std::size_t> merged = {0};
    for (std::size_t i = 0; i + 2 < runs.size(); i += 2) {
      std::inplace_merge(at(runs[i]), at(runs[i + 1]), at(runs[i + 2]), before);
      merged.push_back(runs[i + 2]);
    }
    if (merged.back() != track.size()) merged.push_back(track.size());
    runs = std::move(merged);
  }
}

namespace {

constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.start_ns != b.start_ns ? a.start_ns > b.start_ns : a.track > b.track;
};

}  // namespace

TimeMerge::TimeMerge(EventOrder& order, std::vector<EventOrder::Track> tracks)
    : order_(order), tracks_(std::move(tracks)) {
  for (std::uint32_t i = 0; i < tracks_.size(); ++i) {
    if (!tracks_[i].empty()) heads_.push_back({order_.event(tracks_[i].front()).start_ns, i});
  }
  std::make_heap(heads_.begin(), heads_.end(), kLater);
}

TraceEvent* TimeMerge::next() {
  if (heads_.empty()) return nullptr;
  const std::uint32_t track = heads_.front().track;
  EventOrder::Track& left = tracks_[track];
  TraceEvent& event = order_.event(left.front());
  left = left.subspan(1);
  // Mostly the same track goes on.
  if (heads_.size() == 1 && !left.empty()) return &event;
  if (!left.empty()) {
    const std::int64_t start_ns = order_.event(left.front()).start_ns;
    const std::int64_t rival_ns = std::min(heads_[1].start_ns, heads_[heads_.size() > 2 ? 2 : 1].start_ns);
    if (start_ns < rival_ns) {
      heads_.front().start_ns = start_ns;
      return &event;
    }
  }
  std::pop_heap(heads_.begin(), heads_.end(), kLater);
  if (left.empty()) {
    heads_.pop_back();
  } else {
    heads_.back().start_ns = order_.event(left.front()).start_ns;
    std::push_heap(heads_.begin(), heads_.end(), kLater);
  }
  return &event;
}

}  // namespace joulemap::ingest
