// SPDX-License-Identifier: Apache-2.0
#include "report/text/text_style.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/text/energy_rows.h"

namespace joulemap::report {
namespace {

bool is_utf8_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Byte offset of the UTF-8 character at index `column`.
std::size_t byte_offset_of_column(std::string_view text, std::size_t column) {
  std::size_t offset = 0;
  while (offset < text.size() && column > 0) {
    ++offset;
    while (offset < text.size() && is_utf8_continuation(text[offset])) ++offset;
    --column;
  }
  return offset;
}

struct UnitScale {
  double from;
  double unit;
  std::string_view name;
};

}  // namespace

std::size_t count_display_columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !is_utf8_continuation(byte); }));
}

std::string align_left(std::string_view text, std::size_t columns) {
  const std::size_t display_width = count_display_columns(text);
  return std::string(text) + std::string(display_width < columns ? columns - display_width : 0, ' ');
}

std::string align_right(std::string_view text, std::size_t columns) {
  const std::size_t display_width = count_display_columns(text);
  return std::string(display_width < columns ? columns - display_width : 0, ' ') + std::string(text);
}

std::string shorten_to_columns(std::string_view text, std::size_t columns) {
  constexpr std::string_view kEllipsis = "..";
  const std::size_t display_width = count_display_columns(text);
  if (display_width <= columns) return std::string(text);
  if (columns <= kEllipsis.size()) return std::string(text.substr(0, byte_offset_of_column(text, columns)));
  const std::size_t kept_columns = columns - kEllipsis.size();
  const std::size_t front = (kept_columns + 1) / 2;
  return std::string(text.substr(0, byte_offset_of_column(text, front))) + std::string(kEllipsis) +
         std::string(text.substr(byte_offset_of_column(text, display_width - (kept_columns - front))));
}

std::string shorten_at_centre(std::string_view text, std::size_t columns) {
  const std::size_t display_width = count_display_columns(text);
  if (display_width <= 2 * columns) return std::string(text);
  return std::string(text.substr(0, byte_offset_of_column(text, columns))) +
         std::string(text.substr(byte_offset_of_column(text, display_width - columns)));
}

std::string bar_text(double share, std::size_t columns, CharacterSet character_set) {
  constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double length = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * static_cast<double>(columns);
  std::string out;
  if (character_set == CharacterSet::ascii) return std::string(static_cast<std::size_t>(std::lround(length)), '#');
  const auto bar_eighths = static_cast<std::size_t>(std::lround(length * 8));
  for (std::size_t i = 0; i < bar_eighths / 8; ++i) out += "█";
  return out + std::string(kEighths[bar_eighths % 8]);
}

std::string percent_text(double share) {
  const double percent = 100 * share;
  if (percent > 0 && percent < 0.05) return "<0.1%";
  return percent >= 99.95 ? fmt::format("{:.0f}%", percent) : fmt::format("{:.1f}%", percent);
}

std::string duration_text(double time_s) {
  constexpr std::array<UnitScale, 5> kUnitScales = {
      {{36000, 3600, "h"}, {999.5, 60, "min"}, {0.9995, 1, "s"}, {0.9995e-3, 1e-3, "ms"}, {0, 1e-6, "us"}}};
  for (const auto& [min_value, unit, name] : kUnitScales) {
    if (time_s >= min_value) return fmt::format("{} {}", format_number(time_s / unit, 3), name);
  }
  return "0 s";
}

std::string count_text(unsigned long long count) {
  constexpr std::array<UnitScale, 3> kUnitScales = {{{999.5e6, 1e9, "G"}, {999.5e3, 1e6, "M"}, {9999.5, 1e3, "k"}}};
  const auto value = static_cast<double>(count);
  for (const auto& [min_value, unit, name] : kUnitScales) {
    if (value >= min_value) return fmt::format("{}{}", format_number(value / unit, 3), name);
  }
  return fmt::format("{}", count);
}

}  // namespace joulemap::report
