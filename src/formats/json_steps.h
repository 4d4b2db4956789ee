// SPDX-License-Identifier: Apache-2.0
//
// The longer steps of JsonCursor (json_cursor.h), out of line. They take and give places by value and never the cursor, so
// that a loop over a cursor keeps it in registers. Pure; the text has the padding of byte_scan.h.
//
// `likely`: a quote ends a text only where what follows could (QuoteRule::likely_ends).
#pragma once

#include <cstdint>

// For all that a loop does with a cursor: one call that is not inlined, and the cursor lives in memory.
#define JOULEMAP_INLINE [[gnu::always_inline]] inline

namespace joulemap::formats {

// Where a step ended. One that failed at the text's end would have gone on.
struct JsonStep {
  const char* at = nullptr;
  bool failed = false;
};

struct JsonTextEnd {
  JsonStep step;  // behind the quote
  bool escaped = false;
};

struct JsonNumber {
  JsonStep step;
  bool is_number = false;  // and it fits
  std::int64_t value = 0;
};

enum class JsonRole : std::uint8_t { key, value, either };

// `stop`: the first quote or backslash of the text.
JsonTextEnd find_text_end(const char* stop, const char* end, bool likely, JsonRole role);

// The number times 10^power, cut to a whole one; in quotes, too. Any other value is stepped over.
JsonNumber slow_number(const char* at, const char* end, bool likely, int power);

// Fast for up to 16 digits and a fraction of up to three, as profilers write times.
JsonNumber read_thousandths(const char* at, const char* end, bool likely);

// Over a word: a number, true, nan.
JsonStep past_word(const char* at, const char* end, bool likely);

// Behind the bracket that closes the one before `at`.
JsonStep past_brackets(const char* at, const char* end, bool likely);

}  // namespace joulemap::formats
