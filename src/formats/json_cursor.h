// SPDX-License-Identifier: Apache-2.0
//
// JsonCursor walks over JSON text once, from value to value, and copies nothing: for files of gigabytes of which a few
// members matter. What is not wanted is stepped over with no more checks than it takes to find its end; control characters
// in texts and words that are no JSON (inf, nan) are let pass. Pure; one thread; on bytes that the caller keeps, with the
// padding of byte_scan.h behind them.
//
//   JsonCursor json(begin, end);
//   for (json.enter_object(); json.next_member(key);) {
//     if (key == "name") name = json.text(); else json.skip();
//   }
//   if (json.failed()) ...
//
// After a failure every call gives nothing and leaves the place where it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/byte_scan.h"

namespace joulemap::formats {

enum class QuoteRule : std::uint8_t {
  first_ends,   // as JSON has it
  likely_ends,  // a quote ends a text only where what follows could: for texts whose quotes were not escaped
};

// A text as it stands between its quotes.
struct JsonText {
  std::string_view raw;
  bool escaped = false;  // it holds backslashes: unescape_json tells what is meant

  bool operator==(std::string_view other) const { return raw == other; }
};

// Appends what is meant. Half a surrogate pair becomes U+FFFD, and an escape that is none stays as it is.
void unescape_json(std::string_view raw, std::string& out);

class JsonCursor {
 public:
  JsonCursor(const char* begin, const char* end, QuoteRule rule = QuoteRule::first_ends)
      : at_(begin), end_(end), likely_(rule == QuoteRule::likely_ends) {}

  const char* at() const { return at_; }
  bool failed() const { return failed_; }
  // It failed because the text ended, and not because it makes no sense.
  bool wants_more() const { return failed_ && at_ >= end_; }

  char peek() {  // the first byte of the next value; 0 at the end
    skip_space();
    return at_ < end_ ? *at_ : '\0';
  }
  bool enter_object() { return enter('{'); }
  bool enter_array() { return enter('['); }

  // Within an object, where its first or next member or its end stands. False: the object is over, or it failed.
  bool next_member(std::string_view& key) {
    if (!next('}')) return false;
    if (*at_ != '"') return fail();
    key = string(Role::key).raw;
    skip_space();
    if (failed_ || *at_ != ':') return fail();
    ++at_;
    return true;
  }
  // The same within an array.
  bool next_element() { return next(']'); }

  JsonText text() {
    skip_space();
    if (*at_ != '"') return fail(), JsonText();
    return string(Role::value);
  }

  // A number without its fraction, where it fits; also from within quotes. Else false, and the value is skipped.
  bool integer(std::int64_t& value) {
    skip_space();
    const DigitRun run = read_digits(at_);
    if (run.count == 0 || !ends_json_token(at_[run.count])) return slow_number(value, 0);
    at_ += run.count;
    value = run.value;
    return true;
  }
  // A decimal number times 1000, exactly; digits beyond are cut.
  bool thousandths(std::int64_t& value);

  void skip();
  // Skips what is left of the object or array that was entered last.
  void leave();

 private:
  enum class Role : std::uint8_t { key, value, either };

  bool fail() {
    failed_ = true;
    return false;
  }
  void skip_space() {
    if (is_json_space(*at_) && is_json_space(*++at_)) at_ = past_indent(at_);  // most often there is one blank, or none
  }
  bool enter(char bracket) {
    skip_space();
    if (failed_ || *at_ != bracket) return fail();
    ++at_;
    fresh_ = true;
    return true;
  }
  bool next(char closing) {
    skip_space();
    if (failed_ || *at_ == closing) {
      at_ += failed_ ? 0 : 1;
      return fresh_ = false;
    }
    if (!fresh_) {
      if (*at_ != ',') return fail();
      ++at_;
      skip_space();
    }
    fresh_ = false;
    return true;
  }
  JsonText string(Role role) {
    const char* const begin = at_ + 1;
    const char* const stop = find_quote(begin, end_);
    if (likely_ || *stop != '"' || !ends_json_token(stop[1])) return slow_string(begin, stop, role);
    at_ = stop + 1;
    return {{begin, stop}, false};
  }
  static bool could_end(const char* quote, Role role);
  JsonText slow_string(const char* begin, const char* stop, Role role);
  bool slow_number(std::int64_t& value, int power);
  void skip_word();
  void leave_slowly();
  void give_up(const char* where) {
    at_ = where;
    failed_ = true;
  }

  const char* at_;
  const char* end_;
  bool likely_ = false;
  bool failed_ = false;
  bool fresh_ = false;  // nothing of the present object or array has been read
};

}  // namespace joulemap::formats
