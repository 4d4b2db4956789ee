// SPDX-License-Identifier: Apache-2.0
//
// Out-of-line parsing steps of JsonCursor (json_cursor.h). They pass positions by value and never the cursor, so that a
// loop over a cursor keeps it in registers. Pure; the text has the padding of byte_scan.h.
//
// `likely`: a quote ends a string only if the following text permits it (QuoteRule::likely_ends).
#pragma once

#include <cstdint>

// For all cursor functions inside loops: a single call that is not inlined forces the cursor into memory.
#define JOULEMAP_INLINE [[gnu::always_inline]] inline

namespace joulemap::formats {

// Position after a step. A failure at the end of the text means that the text is incomplete.
struct JsonStep {
  const char* at = nullptr;
  bool failed = false;
};

struct JsonTextEnd {
  JsonStep step;  // behind the closing quote
  bool escaped = false;
};

struct JsonNumber {
  JsonStep step;
  bool is_number = false;  // a number that fits into 64 bits
  std::int64_t value = 0;
};

enum class JsonRole : std::uint8_t { key, value, either };

// `stop`: the first quote or backslash of the string.
JsonTextEnd find_text_end(const char* stop, const char* end, bool likely, JsonRole role);

// The number times 10^power, truncated to an integer; also reads numbers in quotes. Skips any other value.
JsonNumber slow_number(const char* at, const char* end, bool likely, int power);

// Fast path for up to 16 digits and a fraction of up to three, as profilers write times.
JsonNumber read_thousandths(const char* at, const char* end, bool likely);

// Skips a word: a number, true, nan.
JsonStep past_word(const char* at, const char* end, bool likely);

// Returns the position behind the bracket that closes the one before `at`.
JsonStep past_brackets(const char* at, const char* end, bool likely);

}  // namespace joulemap::formats
