// SPDX-License-Identifier: Apache-2.0
//
// Parses a block of a trace's text, events separated by commas, into TraceEvents. A broken event does not affect
// others: it is parsed again with the lenient quote rule, else skipped and counted; parsing continues at the next
// event. Pure except for the tables, which belong to the calling thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ingest/kineto/event_tables.h"
#include "ingest/trace.h"

namespace joulemap::ingest::kineto {

enum class BlockEndReason : std::uint8_t {
  after_event,        // the text ends between two events
  inside_event,       // the text ends inside an event that begins at `end_offset`
  end_of_event_list,  // the list of events ends within the text; `end_offset` is after its bracket
};

struct ParsedBlock {
  std::vector<TraceEvent> events;
  EventCounts event_counts;
  std::optional<std::size_t> first_damage_offset;  // offset in the text
  BlockEndReason end_reason = BlockEndReason::after_event;
  std::size_t end_offset = 0;
};

// `is_last`: no text follows, so an unfinished event is broken.
ParsedBlock parse_json_block(std::string_view text, bool is_last, EventTables& tables);

}  // namespace joulemap::ingest::kineto
