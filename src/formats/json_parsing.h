// SPDX-License-Identifier: Apache-2.0
//
// Out-of-line parsing steps of JsonCursor (json_cursor.h). They take positions by value and never the cursor, so that
// the compiler can keep the cursor of a loop in registers. Pure; the text has the padding of byte_scan.h.
//
// `is_lenient`: a quote ends a string only if the following text permits it (QuoteRule::lenient).
#pragma once

#include <cstdint>

// For all functions that take a cursor inside loops: a single one that is not inlined forces the cursor into memory.
#define JOULEMAP_ALWAYS_INLINE [[gnu::always_inline]] inline

namespace joulemap::formats {

// Where the parser stands after a step, and whether the step failed. If it failed at the end of the text, the text is
// incomplete; otherwise it is invalid.
struct JsonPosition {
  const char* at = nullptr;
  bool failed = false;
};

struct JsonTextEnd {
  JsonPosition position;     // behind the closing quote
  bool has_escapes = false;  // the string contains backslashes
};

struct JsonNumber {
  JsonPosition position;
  bool is_number = false;  // a number that fits into 64 bits
  std::int64_t integer_value = 0;
};

enum class JsonStringRole : std::uint8_t { key, value, either };

// Finds the end of a string. `quote_or_backslash`: its first quote or backslash after the opening quote.
JsonTextEnd find_json_string_end(const char* quote_or_backslash, const char* end, bool is_lenient, JsonStringRole role);

// The number times 10^power, truncated to an integer; also reads numbers in quotes. Skips any other value.
JsonNumber parse_json_number_slowly(const char* position, const char* end, bool is_lenient, int power);

// The number times 1000, as parse_json_number_slowly() with power 3. Fast for up to 16 digits before and three after
// the decimal point, as profilers write times.
JsonNumber parse_json_thousandths(const char* position, const char* end, bool is_lenient);

// Skips a word: a number, true, nan.
JsonPosition skip_json_word(const char* position, const char* end, bool is_lenient);

// Returns the position behind the bracket that closes the one before `position`.
JsonPosition skip_past_closing_bracket(const char* position, const char* end, bool is_lenient);

}  // namespace joulemap::formats
