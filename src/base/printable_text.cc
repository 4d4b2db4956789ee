// SPDX-License-Identifier: Apache-2.0
#include "base/printable_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>

#include "base/text.h"

namespace joulemap {
namespace {

struct CharacterRange {
  char32_t first_code_point;
  char32_t last_code_point;
};
// Unicode 15: general categories Cc, Zl, Zp, and the Cf characters that change direction or are invisible. U+200C and
// U+200D are allowed: scripts and emoji need them.
constexpr std::array<CharacterRange, 10> kUnsafeCharacterRanges = {{{0x00, 0x1F},
                                                                    {0x7F, 0x9F},
                                                                    {0x061C, 0x061C},
                                                                    {0x200B, 0x200B},
                                                                    {0x200E, 0x200F},
                                                                    {0x2028, 0x202E},
                                                                    {0x2060, 0x206F},
                                                                    {0xFEFF, 0xFEFF},
                                                                    {0xFFF9, 0xFFFB},
                                                                    {0xE0000, 0xE007F}}};

// `character` must be valid UTF-8.
char32_t decode_code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  constexpr std::array<unsigned, 5> kFirstByteMasks = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code = byte(0) & kFirstByteMasks.at(character.size());
  for (std::size_t i = 1; i < character.size(); ++i) code = (code << 6U) | (byte(i) & 0x3FU);
  return code;
}

// The sequences of report::TextStyle. Others may hide text.
constexpr std::array<std::string_view, 6> kStyleSequences = {"\x1b[0m",  "\x1b[1m",  "\x1b[2m",
                                                             "\x1b[31m", "\x1b[32m", "\x1b[36m"};

bool starts_with_style_sequence(std::string_view text) {
  return std::ranges::any_of(kStyleSequences, [text](std::string_view sequence) { return text.starts_with(sequence); });
}

// `replace(rest, code)` returns the replacement of the first character of `rest`; nullopt keeps it.
template <class Replace>
std::string replace_unsafe_characters(std::string_view text, const Replace& replace) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    const char32_t code = decode_code_point(text.substr(0, length));
    const std::optional<std::string> replacement = is_unsafe_to_display(code) ? replace(text, code) : std::nullopt;
    replacement ? out += * replacement : out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

std::string json_escape_sequence(char32_t code) {
  if (code < 0x10000) return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
  const std::uint32_t code_offset = static_cast<std::uint32_t>(code) - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (code_offset >> 10U), 0xDC00 + (code_offset & 0x3FFU));
}

}  // namespace

bool is_unsafe_to_display(char32_t character) {
  return std::any_of(kUnsafeCharacterRanges.begin(), kUnsafeCharacterRanges.end(),
                     [character](const CharacterRange& range) {
                       return character >= range.first_code_point && character <= range.last_code_point;
                     });
}

std::string printable(std::string_view text) {
  return replace_unsafe_characters(to_valid_utf8(text),
                                   [](std::string_view, char32_t) { return std::optional<std::string>("?"); });
}

std::string printable_lines(std::string_view text) {
  return replace_unsafe_characters(
      to_valid_utf8(text), [](std::string_view remaining_text, char32_t code) -> std::optional<std::string> {
        if (code == '\n' || code == '\t' || (code == 0x1B && starts_with_style_sequence(remaining_text)))
          return std::nullopt;
        return "?";
      });
}

std::string escape_unsafe_json(std::string json) {
  // Fast path: every character to escape starts with one of these bytes, and most texts contain none.
  if (json.find_first_of("\x7F\xC2\xD8\xE2\xEF\xF3") == std::string::npos) return json;
  return replace_unsafe_characters(json, [](std::string_view, char32_t code) -> std::optional<std::string> {
    if (code < 0x20) return std::nullopt;  // between values: inside strings the writer has already escaped it
    return json_escape_sequence(code);
  });
}

}  // namespace joulemap
