// SPDX-License-Identifier: Apache-2.0
//
// Style of text output (width, character set, colour), and functions that fit text into columns. No information depends
// on colour or weight alone. Pure; a column is one Unicode character.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/printable_text.h"

namespace joulemap::report {

enum class CharacterSet { unicode, ascii };

struct TextStyle {
  CharacterSet character_set = CharacterSet::ascii;
  std::size_t columns = 80;
  bool colour = false;

  bool is_unicode() const { return character_set == CharacterSet::unicode; }
  std::string_view plus_minus_sign() const { return is_unicode() ? "±" : "+-"; }
  std::string bold(std::string_view text) const { return with_sgr_code("1", text); }
  std::string dimmed(std::string_view text) const { return with_sgr_code("2", text); }
  std::string green(std::string_view text) const { return with_sgr_code("32", text); }
  std::string red(std::string_view text) const { return with_sgr_code("31", text); }
  std::string cyan(std::string_view text) const { return with_sgr_code("36", text); }

 private:
  std::string with_sgr_code(std::string_view code, std::string_view text) const {
    return colour && !text.empty() ? "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m"
                                   : std::string(text);
  }
};

// Number of Unicode characters of a UTF-8 text.
std::size_t count_display_columns(std::string_view text);
// align_left() appends blanks, align_right() prepends them. Neither truncates.
std::string align_left(std::string_view text, std::size_t columns);
std::string align_right(std::string_view text, std::size_t columns);
// Shortens a text to at most `columns`: ".." replaces its centre, because both ends of a name are informative.
std::string shorten_to_columns(std::string_view text, std::size_t columns);
// The first and the last `columns` characters of a long text. shorten_to_columns() to at most `columns` gives the same
// result for this as for the whole text.
std::string shorten_at_centre(std::string_view text, std::size_t columns);

// A fraction from 0 to 1 as a bar of `columns` columns, with a resolution of 1/8 column in Unicode.
std::string bar_text(double share, std::size_t columns, CharacterSet character_set);

// "61.4%", "0.3%", "<0.1%"; at most five columns.
std::string percent_text(double share);
// "16.0 s", "418 ms", "12.3 us", "16.7 min", "12.0 h": at most eight columns.
std::string duration_text(double time_s);
// "343", "41.7k", "2.7M": at most five columns.
std::string count_text(unsigned long long count);

}  // namespace joulemap::report
