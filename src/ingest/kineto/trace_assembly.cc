// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/trace_assembly.h"

#include <algorithm>
#include <utility>

#include "ingest/kineto/table_merge.h"

namespace joulemap::ingest::kineto {
namespace {

constexpr std::size_t kMaxPendingBlocks = 8;
constexpr std::size_t kMaxEvent_bytes = 16 << 20;
constexpr std::size_t kMaxFooter_bytes = 16 << 20;

void add_event_counts(EventCounts& sum, const EventCounts& notes) {
  sum.event_count += notes.event_count;
  sum.dropped_event_count += notes.dropped_event_count;
  sum.repaired_event_count += notes.repaired_event_count;
  sum.invalid_device_event_count += notes.invalid_device_event_count;
  sum.external_ids_equal_to_correlation += notes.external_ids_equal_to_correlation;
  sum.external_ids_different_from_correlation += notes.external_ids_different_from_correlation;
  for (const auto& [category, count] : notes.unknown_category_counts) sum.unknown_category_counts[category] += count;
}

}  // namespace

void TraceAssembly::add(std::size_t thread, std::uint64_t number, BlockBuffer& text, ParsedBlock block) {
  std::unique_lock lock(mutex_);
  next_block_number_changed_.wait(lock, [&] { return number < next_block_number_ + kMaxPendingBlocks; });
  PendingBlock& waiting = pending_blocks_[number];
  waiting.thread = thread;
  waiting.block = std::move(block);
  std::swap(waiting.text, text);
  while (!pending_blocks_.empty() && pending_blocks_.begin()->first == next_block_number_) {
    auto pending_block = pending_blocks_.extract(pending_blocks_.begin());
    process_next_block(pending_block.mapped(), thread);
    free_buffers_.push_back(std::move(pending_block.mapped().text));
    ++next_block_number_;
  }
  if (!free_buffers_.empty()) {
    text = std::move(free_buffers_.back());
    free_buffers_.pop_back();
  }
  next_block_number_changed_.notify_all();
}

// `thread`: the calling thread, whose tables may be modified.
void TraceAssembly::process_next_block(PendingBlock& waiting, std::size_t thread) {
  const std::string_view text = waiting.text.contents();
  if (is_event_list_closed_) {
    if (result_.footer.size() < kMaxFooter_bytes) result_.footer += text;
    return;
  }
  if (partial_event_.contents().empty()) return append_block(waiting.thread, waiting.text, std::move(waiting.block));
  partial_event_.append(text);
  parse_partial_event(thread, partial_event_.contents().size() > kMaxEvent_bytes);
}

void TraceAssembly::parse_partial_event(std::size_t thread, bool is_last) {
  BlockBuffer text;
  std::swap(text, partial_event_);
  ParsedBlock block = parse_json_block(text.contents(), is_last, tables_by_thread_[thread]);
  append_block(thread, text, std::move(block));
}

void TraceAssembly::append_block(std::size_t thread, const BlockBuffer& text, ParsedBlock block) {
  if (block.first_damage_offset && !result_.first_damage_offset)
    result_.first_damage_offset = text.file_offset + *block.first_damage_offset;
  add_event_counts(result_.event_counts, block.event_counts);
  if (!block.events.empty()) ordered_blocks_.push_back({thread, std::move(block.events)});
  const std::string_view remaining_text = text.contents().substr(block.end_offset);
  if (block.end_reason == BlockEndReason::inside_event) {
    partial_event_.assign(remaining_text);
    partial_event_.file_offset = text.file_offset + block.end_offset;
  } else if (block.end_reason == BlockEndReason::end_of_event_list) {
    is_event_list_closed_ = true;
    result_.footer = remaining_text;
  }
}

AssemblyResult TraceAssembly::finish(Trace& trace) {
  if (!partial_event_.contents().empty()) parse_partial_event(0, true);
  result_.is_truncated = !is_event_list_closed_;
  TableMerge merge(tables_by_thread_, trace);
  const bool external_ids_are_redundant = result_.event_counts.external_ids_equal_to_correlation >
                                          result_.event_counts.external_ids_different_from_correlation;
  for (OrderedBlock& ordered_block : ordered_blocks_) {
    merge.remap_indices(ordered_block.thread, ordered_block.events);
    if (external_ids_are_redundant) {
      for (TraceEvent& event : ordered_block.events) event.external_id = event.correlation != 0 ? 0 : event.external_id;
    }
    trace.event_blocks.push_back(std::move(ordered_block.events));
  }
  ordered_blocks_.clear();
  merge.set_thread_names();
  return std::move(result_);
}

}  // namespace joulemap::ingest::kineto
