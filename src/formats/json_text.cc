// SPDX-License-Identifier: Apache-2.0
#include "formats/json_text.h"

#include <optional>

namespace joulemap::formats {
namespace {

constexpr std::uint32_t kReplacementCharacter = 0xFFFD;

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

std::optional<std::uint32_t> parse_four_hex_digits(std::string_view text) {
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

// `escaped_text` starts after "\u". Returns the number of bytes consumed.
std::size_t unescape_unicode(std::string_view escaped_text, std::string& out) {
  const std::optional<std::uint32_t> first_code_unit = parse_four_hex_digits(escaped_text);
  if (!first_code_unit) {
    out += "\\u";
    return 0;
  }
  const bool is_high_surrogate = (*first_code_unit & 0xFC00) == 0xD800;
  if (is_high_surrogate && escaped_text.substr(4).starts_with("\\u")) {
    const std::optional<std::uint32_t> second_code_unit = parse_four_hex_digits(escaped_text.substr(6));
    if (second_code_unit && (*second_code_unit & 0xFC00) == 0xDC00) {
      append_utf8(0x10000 + ((*first_code_unit & 0x3FF) << 10) + (*second_code_unit & 0x3FF), out);
      return 10;
    }
  }
  append_utf8((*first_code_unit & 0xF800) == 0xD800 ? kReplacementCharacter : *first_code_unit, out);
  return 4;
}

}  // namespace

void unescape_json(std::string_view escaped_text, std::string& out) {
  for (std::size_t position = 0; position < escaped_text.size(); ++position) {
    if (escaped_text[position] != '\\' || position + 1 == escaped_text.size()) {
      out.push_back(escaped_text[position]);
      continue;
    }
    const char kind = escaped_text[++position];
    constexpr std::string_view kEscapeLetters = "\"\\/bfnrt";
    constexpr std::string_view kUnescapedCharacters = "\"\\/\b\f\n\r\t";
    if (const std::size_t escape_index = kEscapeLetters.find(kind); escape_index != std::string_view::npos) {
      out.push_back(kUnescapedCharacters[escape_index]);
    } else if (kind == 'u') {
      position += unescape_unicode(escaped_text.substr(position + 1), out);
    } else {
      out.push_back('\\');
      out.push_back(kind);
    }
  }
}

}  // namespace joulemap::formats
