// SPDX-License-Identifier: Apache-2.0
//
// TraceAssembly: combines the blocks that several threads parsed into one Trace. Blocks arrive in any order and are
// processed in file order: only then is it known whether a block began between events. If not, it is parsed again
// together with the unfinished text of its predecessor. Owned by the reader of the trace; all its threads call `add`,
// then one calls `finish`.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ingest/kineto/block_reader.h"
#include "ingest/kineto/block_source.h"
#include "ingest/kineto/event_tables.h"
#include "ingest/trace.h"

namespace joulemap::ingest::kineto {

// The text after the list of events, and the statistics of parsing.
struct AssemblyResult {
  std::string footer;
  bool is_truncated = false;  // the list of events is not closed
  EventCounts event_counts;
  std::optional<std::uint64_t> first_damage_offset;  // offset in the text
};

class TraceAssembly {
 public:
  explicit TraceAssembly(std::size_t threads) : tables_by_thread_(threads) {}

  EventTables& tables(std::size_t thread) { return tables_by_thread_[thread]; }

  // `number`: index of the block in the file, from 0. Waits if other threads are far behind. Takes the buffer of `text`
  // and leaves another one there for reuse.
  void add(std::size_t thread, std::uint64_t number, BlockBuffer& text, ParsedBlock block);

  AssemblyResult finish(Trace& trace);

 private:
  struct PendingBlock {
    std::size_t thread = 0;
    BlockBuffer text;
    ParsedBlock block;
  };
  struct OrderedBlock {
    std::size_t thread = 0;  // owner of the tables that the events' indices refer to
    std::vector<TraceEvent> events;
  };
  void process_next_block(PendingBlock& waiting, std::size_t thread);
  void append_block(std::size_t thread, const BlockBuffer& text, ParsedBlock block);
  void parse_partial_event(std::size_t thread, bool is_last);

  std::vector<EventTables> tables_by_thread_;
  std::mutex mutex_;
  std::condition_variable next_block_number_changed_;
  std::map<std::uint64_t, PendingBlock> pending_blocks_;
  std::vector<BlockBuffer> free_buffers_;
  std::uint64_t next_block_number_ = 0;  // index of the next block to process
  BlockBuffer partial_event_;            // text from the start of an event that ends in a later block; empty: none
  bool is_event_list_closed_ = false;
  std::vector<OrderedBlock> ordered_blocks_;
  AssemblyResult result_;
};

}  // namespace joulemap::ingest::kineto
