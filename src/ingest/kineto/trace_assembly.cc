// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/trace_assembly.h"

#include <algorithm>
#include <utility>

#include "ingest/kineto/table_merge.h"

namespace joulemap::ingest::kineto {
namespace {

constexpr std::size_t kMaxPendingBlocks = 8;
constexpr std::size_t kMaxEvent = 16 << 20;
constexpr std::size_t kMaxFooter = 16 << 20;

void add_counts(EventCounts& sum, const EventCounts& notes) {
  sum.total += notes.total;
  sum.dropped += notes.dropped;
  sum.repaired += notes.repaired;
  sum.invalid_devices += notes.invalid_devices;
  sum.external_ids_equal_to_correlation += notes.external_ids_equal_to_correlation;
  sum.external_ids_unlike_correlation += notes.external_ids_unlike_correlation;
  for (const auto& [category, count] : notes.unknown_categories) sum.unknown_categories[category] += count;
}

}  // namespace

void TraceAssembly::add(std::size_t thread, std::uint64_t number, BlockBuffer& text, ParsedBlock block) {
  std::unique_lock lock(mutex_);
  order_advanced_.wait(lock, [&] { return number < next_block_ + kMaxPendingBlocks; });
  PendingBlock& waiting = pending_[number];
  waiting.thread = thread;
  waiting.block = std::move(block);
  std::swap(waiting.text, text);
  while (!pending_.empty() && pending_.begin()->first == next_block_) {
    auto first = pending_.extract(pending_.begin());
    process_in_order(first.mapped(), thread);
    free_buffers_.push_back(std::move(first.mapped().text));
    ++next_block_;
  }
  if (!free_buffers_.empty()) {
    text = std::move(free_buffers_.back());
    free_buffers_.pop_back();
  }
  order_advanced_.notify_all();
}

// `thread`: the calling thread, whose tables may be modified.
void TraceAssembly::process_in_order(PendingBlock& waiting, std::size_t thread) {
  const std::string_view text = waiting.text.view();
  if (is_event_list_closed_) {
    if (result_.footer.size() < kMaxFooter) result_.footer += text;
    return;
  }
  if (partial_event_.view().empty()) return append_block(waiting.thread, waiting.text, std::move(waiting.block));
  partial_event_.append(text);
  parse_partial_event(thread, partial_event_.view().size() > kMaxEvent);
}

void TraceAssembly::parse_partial_event(std::size_t thread, bool is_last) {
  BlockBuffer text;
  std::swap(text, partial_event_);
  ParsedBlock block = parse_json_block(text.view(), is_last, tables_[thread]);
  append_block(thread, text, std::move(block));
}

void TraceAssembly::append_block(std::size_t thread, const BlockBuffer& text, ParsedBlock block) {
  if (block.first_damage_offset && !result_.first_damage_offset)
    result_.first_damage_offset = text.offset + *block.first_damage_offset;
  add_counts(result_.counts, block.counts);
  if (!block.events.empty()) ordered_.push_back({thread, std::move(block.events)});
  const std::string_view rest = text.view().substr(block.end_offset);
  if (block.end == BlockEnd::inside_event) {
    partial_event_.assign(rest);
    partial_event_.offset = text.offset + block.end_offset;
  } else if (block.end == BlockEnd::end_of_event_list) {
    is_event_list_closed_ = true;
    result_.footer = rest;
  }
}

AssemblyResult TraceAssembly::finish(Trace& trace) {
  if (!partial_event_.view().empty()) parse_partial_event(0, true);
  result_.is_truncated = !is_event_list_closed_;
  TableMerge merge(tables_, trace);
  const bool external_ids_are_redundant =
      result_.counts.external_ids_equal_to_correlation > result_.counts.external_ids_unlike_correlation;
  for (OrderedBlock& settled : ordered_) {
    merge.renumber(settled.thread, settled.events);
    if (external_ids_are_redundant) {
      for (TraceEvent& event : settled.events) event.external_id = event.correlation != 0 ? 0 : event.external_id;
    }
    trace.blocks.push_back(std::move(settled.events));
  }
  ordered_.clear();
  merge.name_threads();
  return std::move(result_);
}

}  // namespace joulemap::ingest::kineto
