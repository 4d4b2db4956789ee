// SPDX-License-Identifier: Apache-2.0
//
// Reads a block of a trace's text, events with commas between them, into TraceEvents. An event that is broken costs itself:
// it is tried again with a kinder rule for quotes, else left out and counted, and reading goes on at the next one. Pure but
// for the tables, which belong to the calling thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ingest/kineto/event_tables.h"
#include "ingest/trace.h"

namespace joulemap::ingest::kineto {

enum class BlockEnd : std::uint8_t {
  clean,        // behind an event
  unfinished,   // within an event that begins at `end_at`
  events_over,  // the list of events ends; `end_at` is behind its bracket
};

struct ReadBlock {
  std::vector<TraceEvent> events;
  EventNotes notes;
  std::optional<std::size_t> first_damage;  // where in the text
  BlockEnd end = BlockEnd::clean;
  std::size_t end_at = 0;
};

// `is_last`: nothing follows, so that an event that is not finished is broken.
ReadBlock read_block(std::string_view text, bool is_last, EventTables& tables);

}  // namespace joulemap::ingest::kineto
