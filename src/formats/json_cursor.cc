// SPDX-License-Identifier: Apache-2.0
#include "formats/json_cursor.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace joulemap::formats {
namespace {

constexpr std::uint64_t kThousand = 1000;
constexpr int kLongestExponent = 40;  // beyond, a number is 0 or does not fit
constexpr std::uint32_t kReplacement = 0xFFFD;

const char* past_space(const char* at) {
  while (is_json_space(*at)) ++at;
  return at;
}

bool begins_value(char byte) {
  return byte == '"' || byte == '{' || byte == '[' || byte == '-' || (byte >= '0' && byte <= '9') || byte == 't' ||
         byte == 'f' || byte == 'n';
}

void append_utf8(std::uint32_t code, std::string& out) {
  const auto byte = [&](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

std::optional<std::uint32_t> four_hex_digits(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t value = 0;
  for (const char digit : text.substr(0, 4)) {
    const int lower = digit | 0x20;
    const bool is_letter = lower >= 'a' && lower <= 'f';
    if (!is_letter && (digit < '0' || digit > '9')) return std::nullopt;
    value = value << 4 | static_cast<std::uint32_t>(is_letter ? lower - 'a' + 10 : digit - '0');
  }
  return value;
}

// `raw` begins behind "\u". Gives how many bytes of it were used.
std::size_t unescape_unicode(std::string_view raw, std::string& out) {
  const std::optional<std::uint32_t> first = four_hex_digits(raw);
  if (!first) {
    out += "\\u";
    return 0;
  }
  const bool is_high = (*first & 0xFC00) == 0xD800;
  if (is_high && raw.substr(4).starts_with("\\u")) {
    const std::optional<std::uint32_t> second = four_hex_digits(raw.substr(6));
    if (second && (*second & 0xFC00) == 0xDC00) {
      append_utf8(0x10000 + ((*first & 0x3FF) << 10) + (*second & 0x3FF), out);
      return 10;
    }
  }
  append_utf8((*first & 0xF800) == 0xD800 ? kReplacement : *first, out);
  return 4;
}

// digits * 10^power, cut to a whole number; nothing when it does not fit.
std::optional<std::int64_t> scaled(std::uint64_t digits, int power) {
  for (; power > 0; --power) {
    if (__builtin_mul_overflow(digits, std::uint64_t{10}, &digits)) return std::nullopt;
    if (digits == 0) return 0;
  }
  for (; power < 0 && digits != 0; ++power) digits /= 10;
  if (digits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(digits);
}

struct Decimal {
  std::uint64_t digits = 0;
  int power = 0;
  bool negative = false;
};

// A JSON number, all of the text. Digits that do not fit are cut behind the point and are none of a number before it.
std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal number;
  std::size_t at = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) number.negative = text[at++] == '-';
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
    number.power -= point ? 1 : 0;
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
    exponent = std::min(exponent * 10 + (text[at] - '0'), kLongestExponent);
  }
  number.power += below ? -exponent : exponent;
  return number;
}

}  // namespace

void unescape_json(std::string_view raw, std::string& out) {
  for (std::size_t at = 0; at < raw.size(); ++at) {
    if (raw[at] != '\\' || at + 1 == raw.size()) {
      out.push_back(raw[at]);
      continue;
    }
    const char kind = raw[++at];
    constexpr std::string_view kKinds = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (const std::size_t known = kKinds.find(kind); known != std::string_view::npos) {
      out.push_back(kMeanings[known]);
    } else if (kind == 'u') {
      at += unescape_unicode(raw.substr(at + 1), out);
    } else {
      out.push_back('\\');
      out.push_back(kind);
    }
  }
}

// Whether this quote is likely the end of a text, by what follows: nothing else is known of a text with stray quotes.
bool JsonCursor::could_end(const char* quote, Role role) {
  const char* next = past_space(quote + 1);
  if (*next == ':') return role != Role::value;
  if (role == Role::key) return false;
  if (*next == '}' || *next == ']') return true;
  if (*next != ',') return false;
  next = past_space(next + 1);
  return *next == '}' || *next == ']' || begins_value(*next);
}

JsonText JsonCursor::slow_string(const char* begin, const char* stop, Role role) {
  bool escaped = false;
  while (stop < end_) {
    if (*stop == '\\') {
      escaped = true;
      stop += 2;
    } else if (!likely_ || could_end(stop, role)) {
      at_ = stop + 1;
      if (!ends_json_token(*at_)) return fail(), JsonText();
      return {{begin, stop}, escaped};
    } else {
      ++stop;
    }
    stop = find_quote(stop, end_);
  }
  at_ = end_;
  return fail(), JsonText();
}

// Up to 16 digits and a fraction of up to three, as profilers write them; all else is slow.
bool JsonCursor::thousandths(std::int64_t& value) {
  constexpr std::array<std::uint32_t, 9> kPowers = {1,       10,        100,        1'000,      10'000,
                                                    100'000, 1'000'000, 10'000'000, 100'000'000};
  skip_space();
  const DigitRun high = read_digits(at_);
  if (high.count == 0) return slow_number(value, 3);
  const char* at = at_ + high.count;
  std::uint64_t whole = high.value;
  if (high.count == 8) {
    const DigitRun low = read_digits(at);
    at += low.count;
    whole = whole * kPowers[static_cast<std::size_t>(low.count)] + low.value;
  }
  std::uint64_t fraction = 0;
  if (*at == '.') {
    const DigitRun part = read_digits(at + 1);
    if (part.count < 1 || part.count > 3) return slow_number(value, 3);
    fraction = std::uint64_t{part.value} * kPowers[static_cast<std::size_t>(3 - part.count)];
    at += 1 + part.count;
  }
  if (!ends_json_token(*at)) return slow_number(value, 3);
  at_ = at;
  value = static_cast<std::int64_t>(whole * kThousand + fraction);
  return true;
}

// The number times 10^power.
bool JsonCursor::slow_number(std::int64_t& value, int power) {
  std::string_view word;
  if (*at_ == '"') {
    word = string(Role::value).raw;
  } else if (*at_ == '{' || *at_ == '[') {
    skip();
  } else {
    const char* const begin = at_;
    skip_word();
    word = {begin, at_};
  }
  if (failed_) return false;
  const std::optional<Decimal> number = parse_decimal(word);
  const std::optional<std::int64_t> size = number ? scaled(number->digits, number->power + power) : std::nullopt;
  if (!size) return false;
  value = number->negative ? -*size : *size;
  return true;
}

void JsonCursor::skip() {
  skip_space();
  if (*at_ == '"') {
    string(Role::value);
  } else if (*at_ == '{' || *at_ == '[') {
    ++at_;
    leave();
  } else {
    skip_word();
  }
}

void JsonCursor::skip_word() {
  const char* const begin = at_;
  while (at_ < end_ && !ends_json_token(*at_) && *at_ != '"' && *at_ != '{' && *at_ != '[') ++at_;
  const bool is_empty = at_ == begin && !(likely_ && ends_json_token(*at_) && at_ < end_);
  if (is_empty || *at_ == '"' || *at_ == '{' || *at_ == '[') fail();
}

// Quote by quote and bracket by bracket, told 64 bytes at a time: most of a trace is stepped over here.
void JsonCursor::leave() {
  if (likely_) return leave_slowly();
  int depth = 1;
  bool in_text = false;
  for (const char* chunk = at_; chunk < end_; chunk += 64) {
    for (std::uint64_t marks = structure_mask_64(chunk); marks != 0; marks &= marks - 1) {
      const char* const mark = chunk + std::countr_zero(marks);
      if (*mark == '"') {
        if (in_text && !ends_json_token(mark[1])) return give_up(mark);
        in_text = !in_text;
      } else if (*mark == '\\') {
        return leave_slowly();
      } else if (!in_text) {
        depth += (*mark | 0x20) == '{' ? 1 : -1;
        if (depth > 0) continue;
        at_ = mark + 1;
        fresh_ = false;
        return;
      }
    }
  }
  give_up(end_);
}

void JsonCursor::leave_slowly() {
  for (int depth = 1; !failed_;) {
    at_ = find_structure(at_, end_);
    if (at_ == end_) return give_up(end_);
    if (*at_ == '"') {
      string(Role::either);
      continue;
    }
    const bool opens = (*at_ | 0x20) == '{';
    ++at_;
    depth += opens ? 1 : -1;
    if (depth == 0) break;
  }
  fresh_ = false;
}

}  // namespace joulemap::formats
