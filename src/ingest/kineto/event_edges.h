// SPDX-License-Identifier: Apache-2.0
//
// Finds likely starts of events by the pattern of the text alone: to split a file into blocks that threads parse
// independently, and to find the next event after a broken one. This is a guess: trace_assembly.h parses a block again
// if it began inside an event. Pure; the text has the padding of formats/byte_scan.h.
#pragma once

#include <string_view>

namespace joulemap::ingest::kineto {

// Returns the offset of the first "{" at or after `search_begin` that looks like the start of an event, or npos.
std::size_t find_event_start(std::string_view text, std::size_t search_begin);

// As find_event_start(), but only starts after the end of an object and a comma, as between two events.
std::size_t find_event_start_after_event(std::string_view text, std::size_t search_begin);

// Returns the offset of the last event start that follows another event, or npos.
std::size_t find_last_event_start(std::string_view text);

// Returns the offset behind the "]" that likely ends the list of events, or npos: an event ends before it, and a member
// of the file or the end of the file follows.
std::size_t find_event_list_end(std::string_view text, std::size_t search_begin);

}  // namespace joulemap::ingest::kineto
