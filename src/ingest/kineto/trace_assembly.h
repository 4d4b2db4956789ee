// SPDX-License-Identifier: Apache-2.0
//
// TraceAssembly: makes one Trace of the blocks that several threads read. It takes them in any order and settles them in
// that of the file: only then is it known whether a block began between events. One that did not is read again, together
// with what its predecessor left over. Owned by the reader of the trace; all threads call `add`, `finish` comes after them.
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

// What stands behind the list of events, and how the reading went.
struct AssembledEvents {
  std::string footer;
  bool cut = false;  // the list of events has no end
  EventNotes notes;
  std::optional<std::uint64_t> first_damage;  // in the text
};

class TraceAssembly {
 public:
  explicit TraceAssembly(std::size_t threads) : tables_(threads) {}

  EventTables& tables(std::size_t thread) { return tables_[thread]; }

  // `number`: of the block in the file, from 0. Waits when others are far behind. `text` is taken; a used
  // one comes back, so that its room is used again.
  void add(std::size_t thread, std::uint64_t number, BlockText& text, ReadBlock block);

  AssembledEvents finish(Trace& trace);

 private:
  struct Waiting {
    std::size_t thread = 0;
    BlockText text;
    ReadBlock block;
  };
  struct Settled {
    std::size_t thread = 0;  // whose tables the events' numbers belong to
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
  std::uint64_t next_ = 0;  // the block to settle
  BlockText left_over_;     // begins with an event that was not finished
  bool events_over_ = false;
  std::vector<Settled> settled_;
  AssembledEvents result_;
};

}  // namespace joulemap::ingest::kineto
