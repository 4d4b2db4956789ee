// SPDX-License-Identifier: Apache-2.0
//
// Texts from outside (names in recordings, traces, models and experiments), made safe to show. What a terminal or a browser
// would obey instead of showing is replaced: control characters (C0, DEL, C1), line and paragraph separators, characters
// that turn the direction of writing, and invisible ones. Bytes that are no UTF-8 become U+FFFD. Pure.
#pragma once

#include <string>
#include <string_view>

namespace joulemap {

// Whether that character is obeyed rather than shown.
bool is_obeyed(char32_t character);

// A text of one line: each such character becomes a question mark.
std::string printable(std::string_view text);

// A text of many lines, with colours: line feeds, tabs and "ESC [ digits m" stay.
std::string printable_lines(std::string_view text);

// A whole JSON text: each such character beyond ASCII becomes its escape, so that the text means the same.
std::string with_json_escapes(std::string json);

}  // namespace joulemap
