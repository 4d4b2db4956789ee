// SPDX-License-Identifier: Apache-2.0
//
// Shared by the readers of power logs: rows and fields of CSV as common tools write it, numbers with decimal point or
// comma, and PowerLogBuilder, which converts values into channels and samples. Pure except for the time zone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/power_csv/power_log.h"

namespace joulemap::ingest {

// Visits each non-empty line without its line end; skips a byte order mark at the beginning.
void for_each_line(std::string_view text, const std::function<void(std::string_view)>& line_visitor);

// Returns the separator of a line: the first of ", ", ";", tab and "," that occurs in it outside of quoted fields. So a
// decimal comma ("12,5 W") does not separate where blanks or semicolons do.
std::string_view find_field_separator(std::string_view line);

// Returns the fields of a line, trimmed, without their quotes. `separator` is that of the header: rows may contain others
// in their fields. A line without it has its own.
std::vector<std::string> split_csv_fields(std::string_view line, std::string_view separator);

// Parses "12.5", "12,5", "1e3". Returns nullopt for other texts, negative and non-finite numbers.
std::optional<double> parse_non_negative(std::string_view text);

// Parses Unix nanoseconds; ignores a fraction. Returns nullopt for other texts, negative times and times after 2096.
std::optional<std::int64_t> parse_time_ns(std::string_view text);

// Parses "2026/11/15 11:23:46.123", also with dashes and a T: local time with this UTC offset; if that is empty, in the
// time zone of this machine. Returns Unix nanoseconds; nullopt for other texts.
std::optional<std::int64_t> parse_wall_time(std::string_view text, std::optional<std::int64_t> utc_offset_s);

// Sets class and parent of the channel's domain from its name, as joulemap's own sensors do: package-0 is a CPU and
// part of psys; gpu0-memory is part of gpu0.
void set_domain_class_from_name(Channel& channel);

// Collects values by channel. finish() converts them to samples, estimates update periods and reports gaps.
class PowerLogBuilder {
 public:
  explicit PowerLogBuilder(std::string_view name) : name_(name) {}

  // Returns the index of the channel of that name; `make` describes it at the first call. add_value() takes values in
  // the channel's unit and stores them as multiples of channel.scale.
  std::uint32_t channel(const std::string& name, const std::function<Channel()>& make);
  void add_value(std::uint32_t channel, std::int64_t time_ns, double value);

  void count_row() { ++log_.row_count; }
  void drop_row(std::string_view reason);
  Diagnostics& diagnostics() { return log_.diagnostics; }
  PowerLog& log() { return log_; }

  // `allows_any_order`: rows may be in any order and are sorted; otherwise values that go back in time are dropped.
  Result<PowerLog> finish(bool allows_any_order);

 private:
  struct TimedRawValue {
    std::int64_t time_ns;
    std::uint64_t raw;
  };
  void sort_by_time(std::vector<TimedRawValue>& values, bool allows_any_order);
  void estimate_update_period(Channel& channel, const std::vector<TimedRawValue>& values);

  std::string name_;
  PowerLog log_;
  std::map<std::string, std::uint32_t, std::less<>> channel_indices_;
  std::vector<std::vector<TimedRawValue>> values_by_channel_;  // by channel
  std::map<std::string, std::uint64_t, std::less<>> drop_counts_by_reason_;
  std::uint64_t out_of_order_rows_ = 0;  // values earlier than the previous one of their channel
};

}  // namespace joulemap::ingest
