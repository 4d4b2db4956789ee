// SPDX-License-Identifier: Apache-2.0
//
// A text of a JSON file, as JsonCursor finds it, and what it means. Pure; the bytes are the file's.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::formats {

// As it stands between its quotes.
struct JsonText {
  std::string_view raw;
  bool escaped = false;  // it holds backslashes: unescape_json tells what is meant

  bool operator==(std::string_view other) const { return raw == other; }
};

// Appends what is meant. Half a surrogate pair becomes U+FFFD, and an escape that is none stays as it is.
void unescape_json(std::string_view raw, std::string& out);

}  // namespace joulemap::formats
