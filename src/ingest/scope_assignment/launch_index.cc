// SPDX-License-Identifier: Apache-2.0
#include "ingest/scope_assignment/launch_index.h"

#include <algorithm>
#include <numeric>

namespace joulemap::ingest {
namespace {

constexpr auto is_id_before = [](const auto& a, const auto& b) {
  return a.id != b.id ? a.id < b.id : a.start_ns < b.start_ns;
};

}  // namespace

// Bucket sort: counts the events of each bucket, then copies each event to its bucket. Few buckets need sorting.
LaunchIndex::EventsById::EventsById(const std::vector<LaunchEvent>& launch_events)
    : launch_events_(launch_events.size()) {
  if (launch_events.empty()) return;
  const auto [min_id_event, max_id_event] = std::ranges::minmax_element(launch_events, {}, &LaunchEvent::id);
  smallest_id_ = min_id_event->id;
  const std::uint32_t range = max_id_event->id - smallest_id_;
  while (range >> bucket_shift_ >= launch_events.size()) ++bucket_shift_;
  bucket_begins_.resize((range >> bucket_shift_) + std::size_t{2});
  const auto bucket_of = [this](const LaunchEvent& event) -> std::uint32_t& {
    return bucket_begins_[(event.id - smallest_id_) >> bucket_shift_];
  };
  for (const LaunchEvent& event : launch_events) ++bucket_of(event);
  std::partial_sum(bucket_begins_.begin(), bucket_begins_.end(), bucket_begins_.begin());
  for (std::size_t i = launch_events.size(); i-- > 0;) launch_events_[--bucket_of(launch_events[i])] = launch_events[i];
  for (std::size_t i = 1; i < launch_events_.size(); ++i) {
    if (!is_id_before(launch_events_[i], launch_events_[i - 1])) continue;
    const std::uint32_t* const begin = &bucket_of(launch_events_[i]);
    std::sort(launch_events_.begin() + begin[0], launch_events_.begin() + begin[1], is_id_before);
  }
}

const LaunchIndex::LaunchEvent* LaunchIndex::EventsById::find(std::uint32_t id, std::int64_t start_ns) const {
  const std::size_t bucket = (id - smallest_id_) >> bucket_shift_;
  if (id == 0 || id < smallest_id_ || bucket + 1 >= bucket_begins_.size()) return nullptr;
  const LaunchEvent* const begin = launch_events_.data() + bucket_begins_[bucket];
  const LaunchEvent* const end = launch_events_.data() + bucket_begins_[bucket + 1];
  const LaunchEvent* const next_event = std::upper_bound(begin, end, LaunchEvent{id, 0, start_ns}, is_id_before);
  if (next_event != begin && next_event[-1].id == id) return next_event - 1;
  return next_event != end && next_event->id == id ? next_event : nullptr;
}

LaunchIndex::LaunchIndex(const Trace& trace, const EventOrder& order) : order_(order) {
  // In file order, which is the order of event numbers.
  const auto collect_entries = [&](const auto& event_id) {
    std::vector<LaunchEvent> launch_events;
    std::uint32_t number = 0;
    for (const std::vector<TraceEvent>& block : trace.event_blocks) {
      for (const TraceEvent& event : block) {
        if (const std::uint32_t id = event_id(event)) launch_events.push_back({id, number, event.start_ns});
        ++number;
      }
    }
    return EventsById(launch_events);
  };
  calls_by_correlation_ =
      collect_entries([](const TraceEvent& event) { return event.kind == EventKind::api ? event.correlation : 0; });
  if (trace.gpu_events_identify_ops) return;
  std::vector<std::uint32_t> external_ids;
  for (std::size_t queue = 0; queue < order.queue_count(); ++queue) {
    for (const std::uint32_t number : order.queue(queue)) {
      const TraceEvent& event = order.event(number);
      if (event.external_id == 0) continue;
      if (calls_by_correlation_.find(event.correlation, event.start_ns) == nullptr)
        external_ids.push_back(event.external_id);
    }
  }
  if (external_ids.empty()) return;
  std::sort(external_ids.begin(), external_ids.end());
  operations_by_external_id_ = collect_entries([&](const TraceEvent& event) -> std::uint32_t {
    if (event.kind != EventKind::op && event.kind != EventKind::annotation) return 0;
    return std::binary_search(external_ids.begin(), external_ids.end(), event.external_id) ? event.external_id : 0;
  });
}

std::optional<KernelLaunch> LaunchIndex::find_launch(const TraceEvent& kernel) const {
  const LaunchEvent* launch = calls_by_correlation_.find(kernel.correlation, kernel.start_ns);
  const auto event_scope = [this](const LaunchEvent& event) { return order_.event(event.event).detail_index; };
  // If the call is outside of every scope, the operation with the kernel's external id may still have one.
  if (launch == nullptr || event_scope(*launch) == 0) {
    if (const LaunchEvent* const operation = operations_by_external_id_.find(kernel.external_id, kernel.start_ns))
      launch = operation;
  }
  if (launch == nullptr) return std::nullopt;
  return KernelLaunch{event_scope(*launch), launch->start_ns};
}

}  // namespace joulemap::ingest
