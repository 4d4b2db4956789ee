// SPDX-License-Identifier: Apache-2.0
//
// Where events of a trace likely begin, told by the look of the text alone: to cut a file into blocks that threads can read
// on their own, and to find the next event behind one that is broken. A guess, which is why block_reader.h finds out
// whether a block began in the middle of something. Pure; the text has the padding of formats/byte_scan.h.
#pragma once

#include <string_view>

namespace joulemap::ingest::kineto {

// The first "{" at or after `from` that looks like an event's; npos when there is none.
std::size_t find_event(std::string_view text, std::size_t from);

// The same that stands behind the end of an object and a comma, as one event behind another does.
std::size_t find_event_behind_another(std::string_view text, std::size_t from);

// The last one that another event ends before; npos when there is none.
std::size_t find_last_event(std::string_view text);

// Behind the "]" that likely ends the list of events: an event ends before it, and a member of the file or the file's end
// follows. npos when there is none.
std::size_t find_end_of_events(std::string_view text, std::size_t from);

}  // namespace joulemap::ingest::kineto
