// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <ctime>

#include "base/clock.h"
#include "ingest/power_csv/power_rows.h"

namespace joulemap::ingest {
namespace {

std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
  int value = 0;
  if (at + count > text.size()) return std::nullopt;
  const char* const end = text.data() + at + count;
  const auto [stop, error] = std::from_chars(text.data() + at, end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::int64_t> parse_wall_time(std::string_view text, std::optional<std::int64_t> utc_offset_s) {
  const auto year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  const auto hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const bool fits = (text[4] == '/' || text[4] == '-') && text[7] == text[4] && text[13] == ':' && text[16] == ':';
  if (!fits || *year < 1970 || *year > 2095 || *month < 1 || *month > 12 || *day < 1 || *day > 31) return std::nullopt;
  if (*hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  std::int64_t fraction_ns = 0;
  if (text.size() > 20 && (text[19] == '.' || text[19] == ',')) {
    std::int64_t unit_ns = kNanosecondsPerSecond;
    for (std::size_t i = 20; i < text.size() && text[i] >= '0' && text[i] <= '9' && unit_ns > 1; ++i) {
      unit_ns /= 10;
      fraction_ns += (text[i] - '0') * unit_ns;
    }
  }
  std::tm wall{};
  wall.tm_year = *year - 1900;
  wall.tm_mon = *month - 1;
  wall.tm_mday = *day;
  wall.tm_hour = *hour;
  wall.tm_min = *minute;
  wall.tm_sec = *second;
  wall.tm_isdst = -1;
  const std::int64_t unix_s = utc_offset_s ? timegm(&wall) - *utc_offset_s : mktime(&wall);
  return unix_s * kNanosecondsPerSecond + fraction_ns;
}

}  // namespace joulemap::ingest
