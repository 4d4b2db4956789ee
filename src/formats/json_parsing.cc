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

const char* skip_space(const char* at) {
  while (is_json_space(*at)) ++at;
  return at;
}

bool can_begin_json_value(char byte) {
  return byte == '"' || byte == '{' || byte == '[' || byte == '-' || (byte >= '0' && byte <= '9') || byte == 't' ||
         byte == 'f' || byte == 'n';
}

// Guesses from the following text whether this quote ends the string: nothing else distinguishes an unescaped quote.
bool can_end_json_string(const char* quote, JsonStringRole role) {
  const char* next = skip_space(quote + 1);
  if (*next == ':') return role != JsonStringRole::value;
  if (role == JsonStringRole::key) return false;
  if (*next == '}' || *next == ']') return true;
  if (*next != ',') return false;
  next = skip_space(next + 1);
  return *next == '}' || *next == ']' || can_begin_json_value(*next);
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
  std::size_t at = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) number.is_negative = text[at++] == '-';
  bool any = false;
  bool point = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !point) {
      point = true;
      continue;
    }
    if (text[at] < '0' || text[at] > '9') break;
    any = true;
    const auto digit = static_cast<std::uint64_t>(text[at] - '0');
    const bool fits = number.digits < (std::numeric_limits<std::uint64_t>::max() - 9) / 10;
    if (!fits && !point) return std::nullopt;
    if (!fits) continue;
    number.digits = number.digits * 10 + digit;
    number.power_of_ten -= point ? 1 : 0;
  }
  if (!any) return std::nullopt;
  if (at == text.size()) return number;
  if ((text[at] | 0x20) != 'e' || ++at == text.size()) return std::nullopt;
  const bool below = text[at] == '-';
  if (text[at] == '-' || text[at] == '+') ++at;
  int exponent = 0;
  if (at == text.size()) return std::nullopt;
  for (; at < text.size(); ++at) {
    if (text[at] < '0' || text[at] > '9') return std::nullopt;
    exponent = std::min(exponent * 10 + (text[at] - '0'), kMaxExponent);
  }
  number.power_of_ten += below ? -exponent : exponent;
  return number;
}

// Processes one quote or bracket at a time, for texts with backslashes or stray quotes.
JsonPosition skip_past_closing_bracket_slowly(const char* at, const char* end, bool is_lenient) {
  for (int depth = 1;;) {
    at = find_quote_or_bracket(at, end);
    if (at == end) return {end, true};
    if (*at == '"') {
      const JsonTextEnd text =
          find_json_string_end(find_quote_or_backslash(at + 1, end), end, is_lenient, JsonStringRole::either);
      if (text.position.failed) return text.position;
      at = text.position.at;
      continue;
    }
    depth += (*at | 0x20) == '{' ? 1 : -1;
    ++at;
    if (depth == 0) return {at, false};
  }
}

}  // namespace

JsonTextEnd find_json_string_end(const char* stop, const char* end, bool is_lenient, JsonStringRole role) {
  bool escaped = false;
  while (stop < end) {
    if (*stop == '\\') {
      escaped = true;
      stop += 2;
    } else if (!is_lenient || can_end_json_string(stop, role)) {
      return {{stop + 1, !is_json_token_end(stop[1])}, escaped};
    } else {
      ++stop;
    }
    stop = find_quote_or_backslash(stop, end);
  }
  return {{end, true}, escaped};
}

JsonNumber parse_json_number_slowly(const char* at, const char* end, bool is_lenient, int power) {
  JsonNumber number;
  std::string_view word;
  if (*at == '"') {
    const char* const begin = at + 1;
    number.position =
        find_json_string_end(find_quote_or_backslash(begin, end), end, is_lenient, JsonStringRole::value).position;
    if (!number.position.failed) word = {begin, number.position.at - 1};
  } else if (*at == '{' || *at == '[') {
    number.position = skip_past_closing_bracket(at + 1, end, is_lenient);
  } else {
    number.position = skip_json_word(at, end, is_lenient);
    word = {at, number.position.at};
  }
  const std::optional<DecimalNumber> decimal = number.position.failed ? std::nullopt : parse_decimal(word);
  const std::optional<std::int64_t> size =
      decimal ? scale_by_power_of_ten(decimal->digits, decimal->power_of_ten + power) : std::nullopt;
  if (!size) return number;
  number.is_number = true;
  number.integer_value = decimal->is_negative ? -*size : *size;
  return number;
}

JsonNumber parse_json_thousandths(const char* at, const char* end, bool is_lenient) {
  constexpr std::array<std::uint32_t, 9> kPowers = {1,       10,        100,        1'000,      10'000,
                                                    100'000, 1'000'000, 10'000'000, 100'000'000};
  const char* const begin = at;
  const DigitRun high = read_digits(at);
  if (high.count == 0) return parse_json_number_slowly(begin, end, is_lenient, 3);
  at += high.count;
  std::uint64_t whole = high.value;
  if (high.count == 8) {
    const DigitRun low = read_digits(at);
    at += low.count;
    whole = whole * kPowers[static_cast<std::size_t>(low.count)] + low.value;
  }
  std::uint64_t fraction = 0;
  if (*at == '.') {
    const DigitRun part = read_digits(at + 1);
    if (part.count < 1 || part.count > 3) return parse_json_number_slowly(begin, end, is_lenient, 3);
    fraction = std::uint64_t{part.value} * kPowers[static_cast<std::size_t>(3 - part.count)];
    at += 1 + part.count;
  }
  const bool is_too_large = whole >= static_cast<std::uint64_t>(INT64_MAX) / kThousandthsPerUnit;
  if (is_too_large || !is_json_token_end(*at)) return parse_json_number_slowly(begin, end, is_lenient, 3);
  return {{at, false}, true, static_cast<std::int64_t>(whole * kThousandthsPerUnit + fraction)};
}

JsonPosition skip_json_word(const char* at, const char* end, bool is_lenient) {
  const char* const begin = at;
  while (!is_json_token_end(*at) && *at != '"' && *at != '{' && *at != '[') ++at;
  const bool is_empty = at == begin && !(is_lenient && at < end);
  return {at, is_empty || !is_json_token_end(*at)};
}

// Processes 64 bytes at a time: most of a trace is skipped here.
JsonPosition skip_past_closing_bracket(const char* at, const char* end, bool is_lenient) {
  if (is_lenient) return skip_past_closing_bracket_slowly(at, end, is_lenient);
  int depth = 1;
  bool in_text = false;
  for (const char* chunk = at; chunk < end; chunk += 64) {
    for (std::uint64_t marks = structural_character_mask_64(chunk); marks != 0; marks &= marks - 1) {
      const char* const mark = chunk + std::countr_zero(marks);
      if (*mark == '"') {
        if (in_text && !is_json_token_end(mark[1])) return {mark, true};
        in_text = !in_text;
      } else if (*mark == '\\') {
        return skip_past_closing_bracket_slowly(at, end, is_lenient);
      } else if (!in_text) {
        depth += (*mark | 0x20) == '{' ? 1 : -1;
        if (depth == 0) return {mark + 1, false};
      }
    }
  }
  return {end, true};
}

}  // namespace joulemap::formats
