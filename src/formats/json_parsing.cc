// SPDX-License-Identifier: Apache-2.0
#include "formats/json_parsing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <string_view>

#include "formats/byte_scan.h"

namespace joulemap::formats {
namespace {

constexpr std::uint64_t kThousandthsPerUnit = 1000;
constexpr int kMaxExponent = 40;  // with a larger exponent a number is 0 or does not fit into 64 bits

const char* skip_space(const char* position) {
  while (is_json_space(*position)) ++position;
  return position;
}

bool can_begin_json_value(char byte) {
  return byte == '"' || byte == '{' || byte == '[' || byte == '-' || (byte >= '0' && byte <= '9') || byte == 't' ||
         byte == 'f' || byte == 'n';
}

// Guesses from the following text whether this quote ends the string: nothing else distinguishes an unescaped quote.
bool can_end_json_string(const char* quote, JsonStringRole role) {
  const char* next_character = skip_space(quote + 1);
  if (*next_character == ':') return role != JsonStringRole::value;
  if (role == JsonStringRole::key) return false;
  if (*next_character == '}' || *next_character == ']') return true;
  if (*next_character != ',') return false;
  next_character = skip_space(next_character + 1);
  return *next_character == '}' || *next_character == ']' || can_begin_json_value(*next_character);
}

// digits * 10^power, truncated to an integer; nullopt if it does not fit into 63 bits.
std::optional<std::int64_t> scale_by_power_of_ten(std::uint64_t digits, int power) {
  for (; power > 0; --power) {
    if (__builtin_mul_overflow(digits, std::uint64_t{10}, &digits)) return std::nullopt;
    if (digits == 0) return 0;
  }
  for (; power < 0 && digits != 0; ++power) digits /= 10;
  if (digits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(digits);
}

struct DecimalNumber {
  std::uint64_t digits = 0;
  int power_of_ten = 0;
  bool is_negative = false;
};

// Parses the whole text as a JSON number; nullopt if it is none or its integer part does not fit into 64 bits. Drops
// digits of the fraction that do not fit.
std::optional<DecimalNumber> parse_decimal(std::string_view text) {
  DecimalNumber number;
  std::size_t position = 0;
  if (position < text.size() && (text[position] == '-' || text[position] == '+'))
    number.is_negative = text[position++] == '-';
  bool has_digits = false;
  bool point = false;
  for (; position < text.size(); ++position) {
    if (text[position] == '.' && !point) {
      point = true;
      continue;
    }
    if (text[position] < '0' || text[position] > '9') break;
    has_digits = true;
    const auto digit = static_cast<std::uint64_t>(text[position] - '0');
    const bool fits = number.digits < (std::numeric_limits<std::uint64_t>::max() - 9) / 10;
    if (!fits && !point) return std::nullopt;
    if (!fits) continue;
    number.digits = number.digits * 10 + digit;
    number.power_of_ten -= point ? 1 : 0;
  }
  if (!has_digits) return std::nullopt;
  if (position == text.size()) return number;
  if ((text[position] | 0x20) != 'e' || ++position == text.size()) return std::nullopt;
  const bool has_negative_exponent = text[position] == '-';
  if (text[position] == '-' || text[position] == '+') ++position;
  int exponent = 0;
  if (position == text.size()) return std::nullopt;
  for (; position < text.size(); ++position) {
    if (text[position] < '0' || text[position] > '9') return std::nullopt;
    exponent = std::min(exponent * 10 + (text[position] - '0'), kMaxExponent);
  }
  number.power_of_ten += has_negative_exponent ? -exponent : exponent;
  return number;
}

// Processes one quote or bracket at a time, for texts with backslashes or stray quotes.
JsonPosition skip_past_closing_bracket_slowly(const char* position, const char* end, bool is_lenient) {
  for (int depth = 1;;) {
    position = find_quote_or_bracket(position, end);
    if (position == end) return {end, true};
    if (*position == '"') {
      const JsonTextEnd text =
          find_json_string_end(find_quote_or_backslash(position + 1, end), end, is_lenient, JsonStringRole::either);
      if (text.position.failed) return text.position;
      position = text.position.at;
      continue;
    }
    depth += (*position | 0x20) == '{' ? 1 : -1;
    ++position;
    if (depth == 0) return {position, false};
  }
}

}  // namespace

JsonTextEnd find_json_string_end(const char* quote_or_backslash, const char* end, bool is_lenient,
                                 JsonStringRole role) {
  bool has_escapes = false;
  while (quote_or_backslash < end) {
    if (*quote_or_backslash == '\\') {
      has_escapes = true;
      quote_or_backslash += 2;
    } else if (!is_lenient || can_end_json_string(quote_or_backslash, role)) {
      return {{quote_or_backslash + 1, !is_json_token_end(quote_or_backslash[1])}, has_escapes};
    } else {
      ++quote_or_backslash;
    }
    quote_or_backslash = find_quote_or_backslash(quote_or_backslash, end);
  }
  return {{end, true}, has_escapes};
}

JsonNumber parse_json_number_slowly(const char* position, const char* end, bool is_lenient, int power) {
  JsonNumber number;
  std::string_view word;
  if (*position == '"') {
    const char* const begin = position + 1;
    number.position =
        find_json_string_end(find_quote_or_backslash(begin, end), end, is_lenient, JsonStringRole::value).position;
    if (!number.position.failed) word = {begin, number.position.at - 1};
  } else if (*position == '{' || *position == '[') {
    number.position = skip_past_closing_bracket(position + 1, end, is_lenient);
  } else {
    number.position = skip_json_word(position, end, is_lenient);
    word = {position, number.position.at};
  }
  const std::optional<DecimalNumber> decimal = number.position.failed ? std::nullopt : parse_decimal(word);
  const std::optional<std::int64_t> size =
      decimal ? scale_by_power_of_ten(decimal->digits, decimal->power_of_ten + power) : std::nullopt;
  if (!size) return number;
  number.is_number = true;
  number.integer_value = decimal->is_negative ? -*size : *size;
  return number;
}

JsonNumber parse_json_thousandths(const char* position, const char* end, bool is_lenient) {
  constexpr std::array<std::uint32_t, 9> kPowers = {1,       10,        100,        1'000,      10'000,
                                                    100'000, 1'000'000, 10'000'000, 100'000'000};
  const char* const begin = position;
  const DigitRun high = read_digits(position);
  if (high.count == 0) return parse_json_number_slowly(begin, end, is_lenient, 3);
  position += high.count;
  std::uint64_t integer_part = high.value;
  if (high.count == 8) {
    const DigitRun low = read_digits(position);
    position += low.count;
    integer_part = integer_part * kPowers[static_cast<std::size_t>(low.count)] + low.value;
  }
  std::uint64_t fraction = 0;
  if (*position == '.') {
    const DigitRun part = read_digits(position + 1);
    if (part.count < 1 || part.count > 3) return parse_json_number_slowly(begin, end, is_lenient, 3);
    fraction = std::uint64_t{part.value} * kPowers[static_cast<std::size_t>(3 - part.count)];
    position += 1 + part.count;
  }
  const bool is_too_large = integer_part >= static_cast<std::uint64_t>(INT64_MAX) / kThousandthsPerUnit;
  if (is_too_large || !is_json_token_end(*position)) return parse_json_number_slowly(begin, end, is_lenient, 3);
  return {{position, false}, true, static_cast<std::int64_t>(integer_part * kThousandthsPerUnit + fraction)};
}

JsonPosition skip_json_word(const char* position, const char* end, bool is_lenient) {
  const char* const begin = position;
  while (!is_json_token_end(*position) && *position != '"' && *position != '{' && *position != '[') ++position;
  const bool is_empty = position == begin && !(is_lenient && position < end);
  return {position, is_empty || !is_json_token_end(*position)};
}

// Processes 64 bytes at a time: most of a trace is skipped here.
JsonPosition skip_past_closing_bracket(const char* position, const char* end, bool is_lenient) {
  if (is_lenient) return skip_past_closing_bracket_slowly(position, end, is_lenient);
  int depth = 1;
  bool is_in_string = false;
  for (const char* chunk = position; chunk < end; chunk += 64) {
    for (std::uint64_t marks = structural_character_mask_64(chunk); marks != 0; marks &= marks - 1) {
      const char* const mark = chunk + std::countr_zero(marks);
      if (*mark == '"') {
        if (is_in_string && !is_json_token_end(mark[1])) return {mark, true};
        is_in_string = !is_in_string;
      } else if (*mark == '\\') {
        return skip_past_closing_bracket_slowly(position, end, is_lenient);
      } else if (!is_in_string) {
        depth += (*mark | 0x20) == '{' ? 1 : -1;
        if (depth == 0) return {mark + 1, false};
      }
    }
  }
  return {end, true};
}

}  // namespace joulemap::formats
