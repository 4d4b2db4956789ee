// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "base/printable_text.h"

namespace joulemap {
namespace {

constexpr std::string_view kWhitespace = " \t\r\n\v\f";
constexpr int kMaxCpuNumber = 65536;

// Length of the ASCII prefix. Checks eight bytes at a time, because most text is ASCII.
std::size_t ascii_prefix_length(std::string_view text) {
  constexpr std::uint64_t kNonAsciiBitMask = 0x8080808080808080;
  std::size_t position = 0;
  for (std::uint64_t word = 0; position + sizeof word <= text.size(); position += sizeof word) {
    std::memcpy(&word, text.data() + position, sizeof word);
    if ((word & kNonAsciiBitMask) != 0) break;
  }
  while (position < text.size() && static_cast<signed char>(text[position]) >= 0) ++position;
  return position;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto is_continuation_byte = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first_byte = byte(0);
  if (first_byte < 0x80) return 1;
  if (first_byte >= 0xc2 && first_byte <= 0xdf) return is_continuation_byte(1) ? 2 : 0;
  if (first_byte >= 0xe0 && first_byte <= 0xef) {
    const bool has_valid_second_byte =
        is_continuation_byte(1, first_byte == 0xe0 ? 0xa0 : 0x80, first_byte == 0xed ? 0x9f : 0xbf);
    return has_valid_second_byte && is_continuation_byte(2) ? 3 : 0;
  }
  if (first_byte >= 0xf0 && first_byte <= 0xf4) {
    const bool has_valid_second_byte =
        is_continuation_byte(1, first_byte == 0xf0 ? 0x90 : 0x80, first_byte == 0xf4 ? 0x8f : 0xbf);
    return has_valid_second_byte && is_continuation_byte(2) && is_continuation_byte(3) ? 4 : 0;
  }
  return 0;
}

std::string_view trim(std::string_view text) {
  const std::size_t begin_position = text.find_first_not_of(kWhitespace);
  if (begin_position == std::string_view::npos) return {};
  return text.substr(begin_position, text.find_last_not_of(kWhitespace) - begin_position + 1);
}

std::optional<std::uint64_t> parse_u64(std::string_view text) {
  text = trim(text);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_double(std::string_view text) {
  text = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t end = text.find(separator);
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> split_whitespace(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t start = text.find_first_not_of(kWhitespace);
  while (start != std::string_view::npos) {
    const std::size_t end = text.find_first_of(kWhitespace, start);
    words.push_back(text.substr(start, end - start));
    start = text.find_first_not_of(kWhitespace, end);
  }
  return words;
}

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  for (std::string_view range : split(trim(text), ',')) {
    const std::size_t dash = range.find('-');
    const auto first_cpu = parse_u64(range.substr(0, dash));
    const auto last_cpu = dash == std::string_view::npos ? first_cpu : parse_u64(range.substr(dash + 1));
    if (!first_cpu || !last_cpu || *first_cpu > *last_cpu || *last_cpu >= kMaxCpuNumber) return std::nullopt;
    for (std::uint64_t cpu = *first_cpu; cpu <= *last_cpu; ++cpu) cpus.push_back(static_cast<int>(cpu));
    if (cpus.size() > kMaxCpuNumber) return std::nullopt;
  }
  return cpus;
}

std::string quoted(std::string_view text, std::size_t limit) {
  std::string out = "'";
  for (std::string_view remaining_text = text.substr(0, limit); !remaining_text.empty();) {
    const std::size_t length = utf8_length(remaining_text);
    const std::string_view character = remaining_text.substr(0, std::max<std::size_t>(length, 1));
    if (length > 0 && printable(character) == character) {
      out += character;
    } else {
      for (const char byte : character) {
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    remaining_text.remove_prefix(character.size());
  }
  out += text.size() > limit ? "...'" : "'";
  return out;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t ascii_length = ascii_prefix_length(text);
    out += text.substr(0, ascii_length);
    text.remove_prefix(ascii_length);
    if (text.empty()) break;
    const std::size_t length = utf8_length(text);
    out += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace joulemap
