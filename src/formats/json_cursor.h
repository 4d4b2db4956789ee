// SPDX-License-Identifier: Apache-2.0
//
// JsonCursor walks over JSON text once, value by value, without copying: for files of gigabytes of which a few members
// matter. It skips unwanted values with only the checks needed to find their end. It accepts control characters in
// strings and words that are not JSON (inf, nan). Pure; one thread; the caller owns the bytes and appends the padding
// of byte_scan.h.
//
//   JsonCursor json(begin, end);
//   for (json.enter_object(); json.next_member(key);) {
//     if (key == "name") name = json.text(); else json.skip();
//   }
//   if (json.failed()) ...
//
// After a failure enter_object(), enter_array(), next_member(), next_element() and consume_if_next() return false, so
// that loops end. Values read afterwards are meaningless.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "formats/byte_scan.h"
#include "formats/json_parsing.h"
#include "formats/json_text.h"

namespace joulemap::formats {

// strict: standard JSON. lenient: for writers that do not escape quotes: a quote ends a string only if the text after
// it could follow a string.
enum class QuoteRule : std::uint8_t { strict, lenient };

class JsonCursor {
 public:
  JsonCursor(const char* begin, const char* end, QuoteRule rule = QuoteRule::strict)
      : at_(begin), end_(end), is_lenient_(rule == QuoteRule::lenient) {}

  const char* at() const { return at_; }
  bool failed() const { return failed_; }
  bool needs_more_text() const { return failed_ && at_ >= end_; }  // failed at the end of the text: it is incomplete

  JOULEMAP_ALWAYS_INLINE char peek() {  // first byte of the next value; 0 at the end
    skip_space();
    return *at_;
  }
  JOULEMAP_ALWAYS_INLINE bool enter_object() { return enter('{'); }
  JOULEMAP_ALWAYS_INLINE bool enter_array() { return enter('['); }

  // Moves to the next member of the object. Returns false at the end of the object and on failure.
  JOULEMAP_ALWAYS_INLINE bool next_member(std::string_view& key) {
    if (!next('}')) return false;
    if (*at_ != '"') return fail();
    key = string(JsonStringRole::key).raw;
    skip_space();
    if (failed_ || *at_ != ':') return fail();
    ++at_;
    return true;
  }
  JOULEMAP_ALWAYS_INLINE bool next_element() { return next(']'); }  // like next_member(), for an array
  JOULEMAP_ALWAYS_INLINE JsonText text() {
    return peek() == '"' ? string(JsonStringRole::value) : (fail(), JsonText());
  }

  // Reads a number, also from within quotes, and drops its fraction. Returns false and skips any other value.
  JOULEMAP_ALWAYS_INLINE bool integer(std::int64_t& value) {
    skip_space();
    const DigitRun run = read_digits(at_);
    if (run.count == 0 || !is_json_token_end(at_[run.count]))
      return move_to(parse_json_number_slowly(at_, end_, is_lenient_, 0), value);
    at_ += run.count;
    value = run.value;
    return true;
  }
  // Like integer(), but the number times 1000, exactly: three decimals are kept, further ones dropped.
  JOULEMAP_ALWAYS_INLINE bool thousandths(std::int64_t& value) {
    skip_space();
    return move_to(parse_json_thousandths(at_, end_, is_lenient_), value);
  }

  JOULEMAP_ALWAYS_INLINE void skip() {
    skip_space();
    if (*at_ == '"') {
      string(JsonStringRole::value);
    } else if (*at_ == '{' || *at_ == '[') {
      ++at_;
      leave();
    } else {
      move_to(skip_json_word(at_, end_, is_lenient_));
    }
  }
  // Skips exactly these bytes and returns true if they come next: a fast path for expected text.
  template <std::size_t N>
  JOULEMAP_ALWAYS_INLINE bool consume_if_next(const char (&word)[N]) {
    if (failed_ || std::memcmp(at_, word, N - 1) != 0) return false;
    at_ += N - 1;
    return true;
  }
  JOULEMAP_ALWAYS_INLINE void leave() {  // skips the rest of the innermost entered object or array
    move_to(skip_past_closing_bracket(at_, end_, is_lenient_));
    is_before_first_element_ = false;
  }

 private:
  bool fail() { return !(failed_ = true); }
  void move_to(const JsonPosition& position) {
    at_ = position.at;
    failed_ |= position.failed;
  }
  bool move_to(const JsonNumber& number, std::int64_t& value) {
    move_to(number.position);
    if (number.is_number) value = number.integer_value;
    return number.is_number;
  }
  JOULEMAP_ALWAYS_INLINE void skip_space() {
    if (is_json_space(*at_) && is_json_space(*++at_)) at_ = skip_json_whitespace(at_);  // usually one blank or none
  }
  JOULEMAP_ALWAYS_INLINE bool enter(char bracket) {
    skip_space();
    if (failed_ || *at_ != bracket) return fail();
    ++at_;
    return is_before_first_element_ = true;
  }
  JOULEMAP_ALWAYS_INLINE bool next(char closing) {
    skip_space();
    if (failed_ || *at_ == closing) {
      at_ += failed_ ? 0 : 1;
      return is_before_first_element_ = false;
    }
    if (!is_before_first_element_) {
      if (*at_ != ',') return fail();
      ++at_;
      skip_space();
    }
    is_before_first_element_ = false;
    return true;
  }
  JOULEMAP_ALWAYS_INLINE JsonText string(JsonStringRole role) {
    const char* const begin = at_ + 1;
    const char* const quote_or_backslash = find_quote_or_backslash(begin, end_);
    if (!is_lenient_ && *quote_or_backslash == '"' && is_json_token_end(quote_or_backslash[1])) {
      at_ = quote_or_backslash + 1;
      return {{begin, quote_or_backslash}, false};
    }
    const JsonTextEnd string_end = find_json_string_end(quote_or_backslash, end_, is_lenient_, role);
    move_to(string_end.position);
    return string_end.position.failed ? JsonText() : JsonText{{begin, at_ - 1}, string_end.has_escapes};
  }

  const char* at_;
  const char* end_;
  bool is_lenient_ = false;
  bool failed_ = false;
  bool is_before_first_element_ = false;  // no element of the current object or array has been read
};

}  // namespace joulemap::formats
