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

bool is_possible(const TraceEvent& event) {
  return event.duration_ns >= 0 && event.duration_ns <= kLongest_ns && event.start_ns > -kLatest_ns &&
         event.start_ns < kLatest_ns;
}

}  // namespace

TraceBuilder::TraceBuilder(std::string_view format, TraceClock clock) {
  trace_.format = format;
  trace_.clock = clock;
  trace_.bytes.push_back(0);
  bytes_.emplace(0, 0);
}

std::uint32_t TraceBuilder::name(std::string_view text, const scopes::OpScope& scope) {
  const auto next = static_cast<std::uint32_t>(trace_.names.size());
  if (scope == scopes::OpScope{}) {
    if (const auto known = plain_names_.find(text); known != plain_names_.end()) return known->second;
    plain_names_.emplace(text, next);
    trace_.names.push_back({to_valid_utf8(text), {}});
    return next;
  }
  const auto [slot, is_new] = scoped_names_.try_emplace({std::string(text), scope}, next);
  if (is_new) trace_.names.push_back({to_valid_utf8(text), scope});
  return slot->second;
}

std::uint32_t TraceBuilder::thread(std::int64_t process, std::int64_t thread) {
  const auto next = static_cast<std::uint32_t>(trace_.threads.size());
  const auto [slot, is_new] = threads_.try_emplace({process, thread}, next);
  if (is_new) trace_.threads.push_back({.process = process, .thread = thread, .name = {}});
  return slot->second;
}

std::uint32_t TraceBuilder::kernel_class(KernelKind kind, std::string_view name,
                                         const std::array<std::uint32_t, 3>& grid,
                                         const std::array<std::uint32_t, 3>& block) {
  const ClassKey<std::string_view> key{kind, name, grid, block};
  if (const auto known = classes_.find(key); known != classes_.end()) return known->second;
  const auto next = static_cast<std::uint32_t>(trace_.classes.size());
  classes_.emplace(ClassKey<std::string>{kind, std::string(name), grid, block}, next);
  trace_.classes.push_back({next, kind, to_valid_utf8(name), grid, block});
  return next;
}

std::uint32_t TraceBuilder::queue(const KernelQueue& queue) {
  const auto next = static_cast<std::uint32_t>(trace_.queues.size());
  const auto [slot, is_new] = queues_.try_emplace({queue.device, queue.ordinal, queue.context, queue.stream}, next);
  if (is_new) {
    trace_.queues.push_back(queue);
    trace_.queues.back().id = next;
  }
  return slot->second;
}

std::uint32_t TraceBuilder::bytes(std::uint64_t count) {
  const auto [slot, is_new] = bytes_.try_emplace(count, static_cast<std::uint32_t>(trace_.bytes.size()));
  if (is_new) trace_.bytes.push_back(count);
  return slot->second;
}

bool TraceBuilder::add(const TraceEvent& event) {
  if (!is_possible(event)) {
    count_dropped("with an impossible time");
    return false;
  }
  ++trace_.events_read;
  if (trace_.blocks.empty() || trace_.blocks.back().size() == trace_.blocks.back().capacity()) {
    begin_block(kEventsPerBlock);
  }
  trace_.blocks.back().push_back(event);
  return true;
}

void TraceBuilder::begin_block(std::size_t events) {
  if (events > 0) trace_.blocks.emplace_back().reserve(events);
}

void TraceBuilder::add_blocks(std::vector<std::vector<TraceEvent>> blocks) {
  for (std::vector<TraceEvent>& block : blocks) {
    if (!block.empty()) trace_.blocks.push_back(std::move(block));
  }
}

void TraceBuilder::add_counts(const TraceBuilder& other) {
  trace_.events_read += other.trace_.events_read;
  trace_.events_dropped += other.trace_.events_dropped;
  for (const auto& [why, count] : other.dropped_by_reason_) dropped_by_reason_[why] += count;
}

void TraceBuilder::count_dropped(std::string_view why, std::uint64_t count) {
  trace_.events_read += count;
  trace_.events_dropped += count;
  const auto known = dropped_by_reason_.find(why);
  if (known == dropped_by_reason_.end()) {
    dropped_by_reason_.emplace(why, count);
  } else {
    known->second += count;
  }
}

void TraceBuilder::add_diagnostic(std::string_view code, std::string message, std::string remedy) {
  trace_.diagnostics.add({std::string(code), 1, std::move(message), std::move(remedy)});
}

void TraceBuilder::shift_times(std::int64_t by_ns) {
  for (std::vector<TraceEvent>& block : trace_.blocks) {
    for (TraceEvent& event : block) {
      if (__builtin_add_overflow(event.start_ns, by_ns, &event.start_ns)) event.start_ns = kLatest_ns;
    }
    const std::size_t dropped = std::erase_if(block, [](const TraceEvent& event) { return !is_possible(event); });
    if (dropped == 0) continue;
    count_dropped("with an impossible time", dropped);
    trace_.events_read -= dropped;  // add() already counted them as read
  }
}

Trace TraceBuilder::finish() && {
  for (const auto& [why, count] : dropped_by_reason_) {
    trace_.diagnostics.add(
        {"events_dropped", count, fmt::format("{}: events {} were skipped", trace_.format, why), {}});
  }
  return std::move(trace_);
}

}  // namespace joulemap::ingest
