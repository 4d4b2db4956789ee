// SPDX-License-Identifier: Apache-2.0
#include "ingest/trace_builder.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"

namespace joulemap::ingest {
namespace {

constexpr std::size_t kEventsPerBlock = 16'384;
// 30 days. Longer events count as invalid, so that start + duration does not overflow.
constexpr std::int64_t kLongest_ns = std::int64_t{30} * 86'400 * 1'000'000'000;
// The year 2116 in Unix time; differences of later times could overflow.
constexpr std::int64_t kLatest_ns = std::int64_t{1} << 62;

bool has_valid_times(const TraceEvent& event) {
  return event.duration_ns >= 0 && event.duration_ns <= kLongest_ns && event.start_ns > -kLatest_ns &&
         event.start_ns < kLatest_ns;
}

}  // namespace

TraceBuilder::TraceBuilder(std::string_view format, TraceClock clock) {
  trace_.format = format;
  trace_.clock = clock;
  trace_.byte_counts.push_back(0);
  byte_count_indices_.emplace(0, 0);
}

std::uint32_t TraceBuilder::intern_name(std::string_view text, const scopes::OpScope& scope) {
  const auto new_name_index = static_cast<std::uint32_t>(trace_.names.size());
  if (scope == scopes::OpScope{}) {
    if (const auto name_entry = plain_name_indices_.find(text); name_entry != plain_name_indices_.end())
      return name_entry->second;
    plain_name_indices_.emplace(text, new_name_index);
    trace_.names.push_back({to_valid_utf8(text), {}});
    return new_name_index;
  }
  const auto [slot, is_new] = scoped_name_indices_.try_emplace({std::string(text), scope}, new_name_index);
  if (is_new) trace_.names.push_back({to_valid_utf8(text), scope});
  return slot->second;
}

std::uint32_t TraceBuilder::intern_thread(std::int64_t process, std::int64_t thread) {
  const auto new_thread_index = static_cast<std::uint32_t>(trace_.threads.size());
  const auto [slot, is_new] = thread_indices_.try_emplace({process, thread}, new_thread_index);
  if (is_new) trace_.threads.push_back({.process = process, .thread = thread, .name = {}});
  return slot->second;
}

std::uint32_t TraceBuilder::intern_kernel_class(KernelKind kind, std::string_view name,
                                                const std::array<std::uint32_t, 3>& grid,
                                                const std::array<std::uint32_t, 3>& block) {
  const KernelClassKey<std::string_view> key{kind, name, grid, block};
  if (const auto class_entry = kernel_class_indices_.find(key); class_entry != kernel_class_indices_.end())
    return class_entry->second;
  const auto new_class_index = static_cast<std::uint32_t>(trace_.kernel_classes.size());
  kernel_class_indices_.emplace(KernelClassKey<std::string>{kind, std::string(name), grid, block}, new_class_index);
  trace_.kernel_classes.push_back({new_class_index, kind, to_valid_utf8(name), grid, block});
  return new_class_index;
}

std::uint32_t TraceBuilder::intern_queue(const KernelQueue& queue) {
  const auto new_queue_index = static_cast<std::uint32_t>(trace_.kernel_queues.size());
  const auto [slot, is_new] =
      queue_indices_.try_emplace({queue.device, queue.ordinal, queue.context, queue.stream}, new_queue_index);
  if (is_new) {
    trace_.kernel_queues.push_back(queue);
    trace_.kernel_queues.back().id = new_queue_index;
  }
  return slot->second;
}

std::uint32_t TraceBuilder::intern_byte_count(std::uint64_t count) {
  const auto [slot, is_new] =
      byte_count_indices_.try_emplace(count, static_cast<std::uint32_t>(trace_.byte_counts.size()));
  if (is_new) trace_.byte_counts.push_back(count);
  return slot->second;
}

bool TraceBuilder::add_event(const TraceEvent& event) {
  if (!has_valid_times(event)) {
    add_dropped_events("with an impossible time");
    return false;
  }
  ++trace_.read_event_count;
  if (trace_.event_blocks.empty() || trace_.event_blocks.back().size() == trace_.event_blocks.back().capacity()) {
    begin_block(kEventsPerBlock);
  }
  trace_.event_blocks.back().push_back(event);
  return true;
}

void TraceBuilder::begin_block(std::size_t events) {
  if (events > 0) trace_.event_blocks.emplace_back().reserve(events);
}

void TraceBuilder::add_event_blocks(std::vector<std::vector<TraceEvent>> blocks) {
  for (std::vector<TraceEvent>& block : blocks) {
    if (!block.empty()) trace_.event_blocks.push_back(std::move(block));
  }
}

void TraceBuilder::merge_event_counts(const TraceBuilder& other_builder) {
  trace_.read_event_count += other_builder.trace_.read_event_count;
  trace_.dropped_event_count += other_builder.trace_.dropped_event_count;
  for (const auto& [reason, count] : other_builder.drop_counts_by_reason_) drop_counts_by_reason_[reason] += count;
}

void TraceBuilder::add_dropped_events(std::string_view reason, std::uint64_t count) {
  trace_.read_event_count += count;
  trace_.dropped_event_count += count;
  const auto drop_count = drop_counts_by_reason_.find(reason);
  if (drop_count == drop_counts_by_reason_.end()) {
    drop_counts_by_reason_.emplace(reason, count);
  } else {
    drop_count->second += count;
  }
}

void TraceBuilder::add_diagnostic(std::string_view code, std::string message, std::string remedy) {
  trace_.diagnostics.add({std::string(code), 1, std::move(message), std::move(remedy)});
}

void TraceBuilder::shift_times(std::int64_t offset_ns) {
  for (std::vector<TraceEvent>& block : trace_.event_blocks) {
    for (TraceEvent& event : block) {
      if (__builtin_add_overflow(event.start_ns, offset_ns, &event.start_ns)) event.start_ns = kLatest_ns;
    }
    const std::size_t dropped_event_count =
        std::erase_if(block, [](const TraceEvent& event) { return !has_valid_times(event); });
    if (dropped_event_count == 0) continue;
    add_dropped_events("with an impossible time", dropped_event_count);
    trace_.read_event_count -= dropped_event_count;  // add_event() already counted them as read
  }
}

Trace TraceBuilder::finish() && {
  for (const auto& [reason, count] : drop_counts_by_reason_) {
    trace_.diagnostics.add(
        {"events_dropped", count, fmt::format("{}: events {} were skipped", trace_.format, reason), {}});
  }
  return std::move(trace_);
}

}  // namespace joulemap::ingest
