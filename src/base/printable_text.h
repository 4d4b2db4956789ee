// SPDX-License-Identifier: Apache-2.0
//
// Makes text from outside (names in recordings, traces, models and experiments) safe to display. Replaces characters
// that a terminal or browser interprets instead of displaying: control characters (C0, DEL, C1), line and paragraph
// separators, bidirectional controls and invisible characters. Invalid UTF-8 bytes become U+FFFD. Pure.
#pragma once

#include <string>
#include <string_view>

namespace joulemap {

// Whether a terminal or browser interprets this character instead of displaying it.
bool is_unsafe_to_display(char32_t character);

// For single-line text: each such character becomes a question mark.
std::string printable(std::string_view text);

// For multi-line text with colours: keeps line feeds, tabs and the sequences of report::TextStyle.
std::string printable_lines(std::string_view text);

// For a complete JSON text: escapes each such character from U+007F on, so that the meaning stays the same.
std::string escape_unsafe_json(std::string json);

}  // namespace joulemap
