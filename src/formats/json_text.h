// SPDX-License-Identifier: Apache-2.0
//
// A JSON string as found by JsonCursor, and its unescaping. Pure; views point into the file's bytes.
#pragma once

#include <string>
#include <string_view>

namespace joulemap::formats {

// The text between the quotes, still escaped.
struct JsonText {
  std::string_view raw;
  bool escaped = false;  // contains backslashes: decode with unescape_json

  bool operator==(std::string_view other_text) const { return raw == other_text; }
};

// Appends the decoded text. Half a surrogate pair becomes U+FFFD; an invalid escape stays unchanged.
void unescape_json(std::string_view escaped_text, std::string& out);

}  // namespace joulemap::formats
