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

// `raw` starts after "\u". Returns the number of bytes consumed.
std::size_t unescape_unicode(std::string_view raw, std::string& out) {
  const std::optional<std::uint32_t> first = parse_four_hex_digits(raw);
  if (!first) {
    out += "\\u";
    return 0;
  }
  const bool is_high_surrogate = (*first & 0xFC00) == 0xD800;
  if (is_high_surrogate && raw.substr(4).starts_with("\\u")) {
    const std::optional<std::uint32_t> second = parse_four_hex_digits(raw.substr(6));
    if (second && (*second & 0xFC00) == 0xDC00) {
      append_utf8(0x10000 + ((*first & 0x3FF) << 10) + (*second & 0x3FF), out);
      return 10;
    }
  }
  append_utf8((*first & 0xF800) == 0xD800 ? kReplacementCharacter : *first, out);
  return 4;
}

}  // namespace

void unescape_json(std::string_view raw, std::string& out) {
  for (std::size_t at = 0; at < raw.size(); ++at) {
    if (raw[at] != '\\' || at + 1 == raw.size()) {
      out.push_back(raw[at]);
      continue;
    }
    const char kind = raw[++at];
    constexpr std::string_view kEscapeLetters = "\"\\/bfnrt";
    constexpr std::string_view kUnescapedCharacters = "\"\\/\b\f\n\r\t";
    if (const std::size_t known = kEscapeLetters.find(kind); known != std::string_view::npos) {
      out.push_back(kUnescapedCharacters[known]);
    } else if (kind == 'u') {
      at += unescape_unicode(raw.substr(at + 1), out);
    } else {
      out.push_back('\\');
      out.push_back(kind);
    }
  }
}

}  // namespace joulemap::formats
