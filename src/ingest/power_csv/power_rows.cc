// SPDX-License-Identifier: Apache-2.0
#include "ingest/power_csv/power_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

#include "base/clock.h"
#include "base/median.h"
#include "base/text.h"

namespace joulemap::ingest {
namespace {

// An interval longer than this many median intervals, and than a second, is a gap.
constexpr std::int64_t kMinGapInMedianIntervals = 10;
constexpr double kMinUpdatePeriod_s = 0.001;
constexpr double kMaxRawReadingValue = 9e18;
// The year 2096: later times are damage and could overflow sums.
constexpr std::int64_t kLatestUnixTime_ns = 4'000'000'000'000'000'000;

// Returns the length of the quoted field that `text` begins with, quotes included; 0 if it begins with none. Two quotes
// in a row are a quote in the field.
std::size_t quoted_prefix_length(std::string_view text) {
  if (!text.starts_with('"')) return 0;
  for (std::size_t quote = text.find('"', 1); quote != std::string_view::npos; quote = text.find('"', quote + 2)) {
    if (!text.substr(quote + 1).starts_with('"')) return quote + 1;
  }
  return 0;
}

// Whether `separator` occurs in `line` outside of quoted fields.
bool separates_fields(std::string_view separator, std::string_view line) {
  bool is_field_start = true;
  while (line.size() >= separator.size()) {
    if (line.starts_with(separator)) return true;
    const std::size_t quoted_length = is_field_start ? quoted_prefix_length(line) : 0;
    is_field_start = std::string_view(",;\t").find(line.front()) != std::string_view::npos ||
                     (is_field_start && line.front() == ' ');
    line.remove_prefix(std::max(quoted_length, std::size_t{1}));
  }
  return false;
}

// Returns the position of the separator that ends the first field of `line`; npos if it is the last field.
std::size_t find_field_end(std::string_view line, std::string_view separator) {
  const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
  return line.find(separator, blanks + quoted_prefix_length(line.substr(blanks)));
}

// Returns the content of a field without its quotes.
std::string unquote(std::string_view field) {
  if (field.size() < 2 || field.front() != '"' || field.back() != '"') return std::string(field);
  std::string content;
  for (std::size_t i = 1; i + 1 < field.size(); ++i) {
    content += field[i];
    if (field[i] == '"' && field[i + 1] == '"' && i + 2 < field.size()) ++i;
  }
  return std::string(trim(content));
}

}  // namespace

void for_each_line(std::string_view text, const std::function<void(std::string_view)>& line_visitor) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty()) {
    const std::size_t end = text.find_first_of("\r\n");
    const std::string_view line = text.substr(0, end);
    if (!trim(line).empty()) line_visitor(line);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::string_view find_field_separator(std::string_view line) {
  for (const std::string_view separator : {", ", ";", "\t"}) {
    if (separates_fields(separator, line)) return separator;
  }
  return ",";
}

std::vector<std::string> split_csv_fields(std::string_view line, std::string_view separator) {
  if (!separates_fields(separator, line)) separator = find_field_separator(line);
  std::vector<std::string> fields;
  while (true) {
    const std::size_t end = find_field_end(line, separator);
    fields.push_back(unquote(trim(line.substr(0, end))));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + separator.size());
  }
}

std::optional<double> parse_non_negative(std::string_view text) {
  std::string number(trim(text));
  if (std::count(number.begin(), number.end(), ',') == 1 && number.find('.') == std::string::npos) {
    number[number.find(',')] = '.';
  }
  const std::optional<double> value = parse_double(number);
  if (!value || !std::isfinite(*value) || std::signbit(*value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_time_ns(std::string_view text) {
  text = trim(text);
  const std::size_t point = text.find('.');
  if (point != std::string_view::npos && text.find_first_not_of("0123456789", point + 1) == std::string_view::npos) {
    text = text.substr(0, point);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < 0 || value > kLatestUnixTime_ns) return std::nullopt;
  return value;
}

void set_domain_class_from_name(Channel& channel) {
  const std::string_view name = channel.domain;
  const std::size_t dash = name.find('-');
  const std::string package = dash == std::string_view::npos ? "package-0" : "package" + std::string(name.substr(dash));
  if (name.starts_with("gpu") && name.ends_with("-memory")) {
    channel.part_of = name.substr(0, dash);
  } else if (name.starts_with("gpu")) {
    channel.domain_class = DomainClass::gpu;
    if (channel.device.empty()) channel.device = channel.domain;
  } else if (name.starts_with("package") || name == "cpu") {
    channel.domain_class = DomainClass::cpu;
    channel.part_of = "psys";
  } else if (name.starts_with("dram") || name == "memory") {
    channel.domain_class = DomainClass::memory;
    channel.part_of = "psys";
  } else if (name == "psys" || name == "platform") {
    channel.domain_class = DomainClass::platform;
  } else if (name.starts_with("core") || name.starts_with("uncore")) {
    channel.part_of = package;
  }
}

std::uint32_t PowerLogBuilder::channel(const std::string& name, const std::function<Channel()>& make) {
  const auto [slot, is_new] = channel_indices_.try_emplace(name, static_cast<std::uint32_t>(log_.channels.size()));
  if (is_new) {
    log_.channels.push_back(make());
    log_.channels.back().name = name;
    values_by_channel_.emplace_back();
  }
  return slot->second;
}

void PowerLogBuilder::add_value(std::uint32_t channel, std::int64_t time_ns, double value) {
  const double raw_value = std::round(value / log_.channels[channel].scale);
  if (raw_value > kMaxRawReadingValue) return drop_row("the value is too large");
  values_by_channel_[channel].push_back({time_ns, static_cast<std::uint64_t>(raw_value)});
}

void PowerLogBuilder::drop_row(std::string_view reason) {
  ++log_.dropped_row_count;
  ++drop_counts_by_reason_.try_emplace(std::string(reason)).first->second;
}

void PowerLogBuilder::sort_by_time(std::vector<TimedRawValue>& values, bool allows_any_order) {
  const auto is_earlier = [](const TimedRawValue& a, const TimedRawValue& b) { return a.time_ns < b.time_ns; };
  if (std::is_sorted(values.begin(), values.end(), is_earlier)) return;
  if (allows_any_order) {
    for (std::size_t i = 1; i < values.size(); ++i) out_of_order_rows_ += is_earlier(values[i], values[i - 1]) ? 1 : 0;
    std::stable_sort(values.begin(), values.end(), is_earlier);
    return;
  }
  std::vector<TimedRawValue> sorted_values;
  for (const TimedRawValue& value : values) {
    if (sorted_values.empty() || value.time_ns >= sorted_values.back().time_ns) {
      sorted_values.push_back(value);
    } else {
      drop_row("the time is before that of the previous row");
    }
  }
  values = std::move(sorted_values);
}

// Estimates the update period of a channel, which sets the uncertainty at the ends of an interval, and reports gaps
// between the samples of a gauge.
void PowerLogBuilder::estimate_update_period(Channel& channel, const std::vector<TimedRawValue>& values) {
  std::vector<std::int64_t> intervals_ns;
  std::vector<std::int64_t> update_intervals_ns;
  std::optional<std::int64_t> last_change_ns;
  for (std::size_t i = 1; i < values.size(); ++i) {
    intervals_ns.push_back(values[i].time_ns - values[i - 1].time_ns);
    if (values[i].raw == values[i - 1].raw) continue;
    if (last_change_ns) update_intervals_ns.push_back(values[i].time_ns - *last_change_ns);
    last_change_ns = values[i].time_ns;
  }
  const std::int64_t median_interval_ns = median_or(intervals_ns, std::int64_t{0});
  // If every reading has a new value, the update period is unknown and may be arbitrarily short.
  const std::int64_t update_interval_ns = median_or(update_intervals_ns, std::int64_t{0});
  channel.refresh_s = update_interval_ns - median_interval_ns > median_interval_ns / 2
                          ? std::max(seconds(update_interval_ns), kMinUpdatePeriod_s)
                          : kMinUpdatePeriod_s;
  if (!measures_energy_or_power(channel) || channel.kind == ChannelKind::counter) return;
  std::uint64_t gaps = 0;
  std::int64_t missing_ns = 0;
  for (const std::int64_t interval_ns : intervals_ns) {
    if (interval_ns / kMinGapInMedianIntervals <= median_interval_ns || interval_ns <= kNanosecondsPerSecond) continue;
    ++gaps;
    missing_ns += interval_ns - median_interval_ns;
  }
  if (gaps == 0) return;
  log_.diagnostics.add({"power_gap",
                        gaps,
                        fmt::format("{}: {} has gaps of {:.3f} s in total; the power around each gap is used", name_,
                                    channel.name, seconds(missing_ns)),
                        {}});
}

Result<PowerLog> PowerLogBuilder::finish(bool allows_any_order) {
  bool has_energy = false;
  for (std::uint32_t i = 0; i < values_by_channel_.size(); ++i) {
    sort_by_time(values_by_channel_[i], allows_any_order);
    estimate_update_period(log_.channels[i], values_by_channel_[i]);
    for (const TimedRawValue& value : values_by_channel_[i]) {
      log_.samples.push_back({i, {value.raw, value.time_ns, value.time_ns, ReadCode::ok}});
    }
    has_energy = has_energy || (measures_energy_or_power(log_.channels[i]) && values_by_channel_[i].size() > 1);
    values_by_channel_[i] = {};
  }
  for (const auto& [reason, count] : drop_counts_by_reason_) {
    log_.diagnostics.add({"power_rows_dropped", count, fmt::format("{}: rows were skipped: {}", name_, reason), {}});
  }
  if (out_of_order_rows_ > 0) {
    log_.diagnostics.add({"power_out_of_order",
                          out_of_order_rows_,
                          fmt::format("{}: times decrease; the rows were sorted by time, which is wrong if the clock "
                                      "was set while they were written",
                                      name_),
                          {}});
  }
  if (!has_energy) {
    log_.diagnostics.add({"no_power", 1, fmt::format("{} does not contain two values of power or energy", name_), {}});
  }
  return std::move(log_);
}

PowerLog merge_power_logs(std::vector<PowerLog> logs) {
  PowerLog merged_log;
  for (PowerLog& log : logs) {
    std::vector<std::optional<std::uint32_t>> number;
    for (Channel& channel : log.channels) {
      const bool is_known_channel =
          std::any_of(merged_log.channels.begin(), merged_log.channels.end(), [&](const Channel& merged_channel) {
            return merged_channel.domain == channel.domain && merged_channel.name == channel.name;
          });
      number.push_back(is_known_channel ? std::nullopt
                                        : std::optional(static_cast<std::uint32_t>(merged_log.channels.size())));
      if (is_known_channel) {
        merged_log.diagnostics.add(
            {"power_told_twice", 1, fmt::format("{} is in two files; the first is used", channel.name), {}});
      } else {
        merged_log.channels.push_back(std::move(channel));
      }
    }
    for (Sample sample : log.samples) {
      if (!number[sample.channel]) continue;
      sample.channel = *number[sample.channel];
      merged_log.samples.push_back(sample);
    }
    merged_log.row_count += log.row_count;
    merged_log.dropped_row_count += log.dropped_row_count;
    merged_log.diagnostics.add_all(log.diagnostics);
  }
  return merged_log;
}

namespace {

std::optional<int> parse_fixed_digits(std::string_view text, std::size_t offset, std::size_t count) {
  int value = 0;
  if (offset + count > text.size()) return std::nullopt;
  const char* const end = text.data() + offset + count;
  const auto [digits_end, error] = std::from_chars(text.data() + offset, end, value);
  if (error != std::errc() || digits_end != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::int64_t> parse_wall_time(std::string_view text, std::optional<std::int64_t> utc_offset_s) {
  const auto year = parse_fixed_digits(text, 0, 4), month = parse_fixed_digits(text, 5, 2),
             day = parse_fixed_digits(text, 8, 2);
  const auto hour = parse_fixed_digits(text, 11, 2), minute = parse_fixed_digits(text, 14, 2),
             second = parse_fixed_digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const bool fits = (text[4] == '/' || text[4] == '-') && text[7] == text[4] && text[13] == ':' && text[16] == ':';
  if (!fits || *year < 1970 || *year > 2095 || *month < 1 || *month > 12 || *day < 1 || *day > 31) return std::nullopt;
  if (*hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  std::int64_t fraction_ns = 0;
  if (text.size() > 20 && (text[19] == '.' || text[19] == ',')) {
    std::int64_t place_value_ns = kNanosecondsPerSecond;
    for (std::size_t i = 20; i < text.size() && text[i] >= '0' && text[i] <= '9' && place_value_ns > 1; ++i) {
      place_value_ns /= 10;
      fraction_ns += (text[i] - '0') * place_value_ns;
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
