// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/trace_assembly.h"

#include <algorithm>
#include <utility>

#include "ingest/kineto/table_merge.h"

namespace joulemap::ingest::kineto {
namespace {

constexpr std::size_t kMostWaiting = 8;
constexpr std::size_t kLongestEvent = 16 << 20;
constexpr std::size_t kLongestFooter = 16 << 20;

void add_notes(EventNotes& sum, const EventNotes& notes) {
  sum.seen += notes.seen;
  sum.dropped += notes.dropped;
  sum.repaired += notes.repaired;
  sum.odd_devices += notes.odd_devices;
  sum.same_ids += notes.same_ids;
  sum.different_ids += notes.different_ids;
  for (const auto& [category, count] : notes.unknown_categories) sum.unknown_categories[category] += count;
}

}  // namespace

void TraceAssembly::add(std::size_t thread, std::uint64_t number, BlockText& text, ReadBlock block) {
  std::unique_lock lock(mutex_);
  settled_more_.wait(lock, [&] { return number < next_ + kMostWaiting; });
  Waiting& waiting = waiting_[number];
  waiting.thread = thread;
  waiting.block = std::move(block);
  std::swap(waiting.text, text);
  while (!waiting_.empty() && waiting_.begin()->first == next_) {
    auto first = waiting_.extract(waiting_.begin());
    settle(first.mapped(), thread);
    used_.push_back(std::move(first.mapped().text));
    ++next_;
  }
  if (!used_.empty()) {
    text = std::move(used_.back());
    used_.pop_back();
  }
  settled_more_.notify_all();
}

// `thread`: the calling thread, whose tables may be modified.
void TraceAssembly::settle(Waiting& waiting, std::size_t thread) {
  const std::string_view text = waiting.text.view();
  if (events_over_) {
    if (result_.footer.size() < kLongestFooter) result_.footer += text;
    return;
  }
  if (left_over_.view().empty()) return take(waiting.thread, waiting.text, std::move(waiting.block));
  left_over_.append(text);
  read_left_over(thread, left_over_.view().size() > kLongestEvent);
}

void TraceAssembly::read_left_over(std::size_t thread, bool is_last) {
  BlockText text;
  std::swap(text, left_over_);
  ReadBlock block = read_block(text.view(), is_last, tables_[thread]);
  take(thread, text, std::move(block));
}

void TraceAssembly::take(std::size_t thread, const BlockText& text, ReadBlock block) {
  if (block.first_damage && !result_.first_damage) result_.first_damage = text.offset + *block.first_damage;
  add_notes(result_.notes, block.notes);
  if (!block.events.empty()) settled_.push_back({thread, std::move(block.events)});
  const std::string_view rest = text.view().substr(block.end_at);
  if (block.end == BlockEnd::unfinished) {
    left_over_.assign(rest);
    left_over_.offset = text.offset + block.end_at;
  } else if (block.end == BlockEnd::events_over) {
    events_over_ = true;
    result_.footer = rest;
  }
}

AssembledEvents TraceAssembly::finish(Trace& trace) {
  if (!left_over_.view().empty()) read_left_over(0, true);
  result_.cut = !events_over_;
  TableMerge merge(tables_, trace);
  const bool ids_tell_nothing = result_.notes.same_ids > result_.notes.different_ids;
  for (Settled& settled : settled_) {
    merge.renumber(settled.thread, settled.events);
    if (ids_tell_nothing) {
      for (TraceEvent& event : settled.events) event.external = event.correlation != 0 ? 0 : event.external;
    }
    trace.blocks.push_back(std::move(settled.events));
  }
  settled_.clear();
  merge.name_threads();
  return std::move(result_);
}

}  // namespace joulemap::ingest::kineto
