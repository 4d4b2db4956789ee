// SPDX-License-Identifier: Apache-2.0
//
// TraceAssembly: combines the blocks that several threads parsed into one Trace. Blocks arrive in any order and are
// settled in file order: only then is it known whether a block began between events. If not, it is parsed again
// together with the unfinished text of its predecessor. Owned by the reader of the trace; all threads call `add`,
// `finish` follows.
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
struct AssembledEvents {
  std::string footer;
  bool cut = false;  // the list of events is not closed
  EventNotes notes;
  std::optional<std::uint64_t> first_damage;  // offset in the text
};

class TraceAssembly {
 public:
  explicit TraceAssembly(std::size_t threads) : tables_(threads) {}

  EventTables& tables(std::size_t thread) { return tables_[thread]; }

  // `number`: index of the block in the file, from 0. Waits if other threads are far behind. Takes `text` and returns a
  // used buffer in it for reuse.
  void add(std::size_t thread, std::uint64_t number, BlockText& text, ReadBlock block);

  AssembledEvents finish(Trace& trace);

 private:
  struct Waiting {
    std::size_t thread = 0;
    BlockText text;
    ReadBlock block;
  };
  struct Settled {
    std::size_t thread = 0;  // owner of the tables that the events' indices refer to
    std::vector<TraceEvent> events;
  };
  void settle(Waiting& waiting, std::size_t thread);
  void take(std::size_t thread, const BlockText& text, ReadBlock block);
  void read_left_over(std::size_t thread, bool is_last);

  std::vector<EventTables> tables_;
  std::mutex mutex_;
  std::condition_variable settled_more_;
  std::map<std::uint64_t, Waiting> waiting_;
  std::vector<BlockText> used_;
  std::uint64_t next_ = 0;  // index of the next block to settle
  BlockText left_over_;     // begins with an unfinished event
  bool events_over_ = false;
  std::vector<Settled> settled_;
  AssembledEvents result_;
};

}  // namespace joulemap::ingest::kineto
