// SPDX-License-Identifier: Apache-2.0
#include "report/text/sparkline.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace joulemap::report {
namespace {

constexpr std::array<std::string_view, 8> kUnicodeSparklineLevels = {"\u2581", "\u2582", "\u2583", "\u2584",
                                                                     "\u2585", "\u2586", "\u2587", "\u2588"};
constexpr std::array<std::string_view, 8> kAsciiSparklineLevels = {"_", ".", ":", "-", "=", "+", "*", "#"};

std::optional<double> mean_of_known_values(std::span<const std::optional<double>> values) {
  double sum = 0;
  double known_value_count = 0;
  for (const std::optional<double>& value : values) {
    if (!value) continue;
    sum += *value;
    ++known_value_count;
  }
  return known_value_count > 0 ? std::optional(sum / known_value_count) : std::nullopt;
}

}  // namespace

std::string sparkline(std::span<const std::optional<double>> values, std::size_t columns, double top, bool unicode) {
  std::string line;
  const std::size_t count = std::min(columns, values.size());
  for (std::size_t column = 0; column < count; ++column) {
    const std::size_t begin_index = column * values.size() / count;
    const std::size_t end_index = (column + 1) * values.size() / count;
    const std::optional<double> value = mean_of_known_values(values.subspan(begin_index, end_index - begin_index));
    if (!value) {
      line += ' ';
      continue;
    }
    const double height = top > 0 ? std::clamp(*value / top, 0.0, 1.0) : 0;
    const auto level = std::min(static_cast<std::size_t>(height * static_cast<double>(kUnicodeSparklineLevels.size())),
                                kUnicodeSparklineLevels.size() - 1);
    line += unicode ? kUnicodeSparklineLevels[level] : kAsciiSparklineLevels[level];
  }
  return line;
}

}  // namespace joulemap::report
