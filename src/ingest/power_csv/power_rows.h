// SPDX-License-Identifier: Apache-2.0
//
// What the readers of power logs share: rows and fields of a CSV as people's tools write it, numbers of any locale, and
// PowerLogMaker, which turns values into channels and samples. Pure.
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

// Each line that is not empty, without its end; a byte order mark at the beginning is left out.
void for_each_line(std::string_view text, const std::function<void(std::string_view)>& visit);

// Fields of a line, trimmed, without the quotes around them. The separator is ", ", ";", a tab or ",": whichever comes first
// in that list and in the line, so that a decimal comma ("12,5 W") is no separator where blanks or semicolons are.
std::vector<std::string> fields_of(std::string_view line);

// "12.5", "12,5", "1e3". Nothing for anything else, and for what is negative or not finite.
std::optional<double> parse_amount(std::string_view text);

// A whole number; a fraction is left out.
std::optional<std::int64_t> parse_time_ns(std::string_view text);

// "2026/11/15 11:23:46.123", also with dashes and a T: a clock on the wall, of this offset, else of this machine's zone.
// Unix nanoseconds.
std::optional<std::int64_t> parse_wall_time(std::string_view text, std::optional<std::int64_t> utc_offset_s);

// What a domain of that name covers, and what it is part of: as our own sensors have it.
void describe_domain(Channel& channel);

// Collects values; finish() makes channels of what was seen: how often a value is renewed, where values are missing.
class PowerLogMaker {
 public:
  explicit PowerLogMaker(std::string_view name) : name_(name) {}

  // The channel with that name; `make` describes a new one. Raw values are kept in units of channel.scale.
  std::uint32_t channel(const std::string& name, const std::function<Channel()>& make);
  void add(std::uint32_t channel, std::int64_t time_ns, double value);

  void count_row() { ++log_.rows; }
  void drop_row(std::string_view why);
  Diagnostics& diagnostics() { return log_.diagnostics; }
  PowerLog& log() { return log_; }

  // `sorts`: rows may be in any order; else those that go back in time are dropped.
  Result<PowerLog> finish(bool sorts);

 private:
  struct Value {
    std::int64_t time_ns;
    std::uint64_t raw;
  };
  void put_in_order(std::vector<Value>& values, bool sorts);
  void judge(Channel& channel, const std::vector<Value>& values);

  std::string name_;
  PowerLog log_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<std::vector<Value>> values_;  // by channel
  std::map<std::string, std::uint64_t, std::less<>> dropped_;
  std::uint64_t out_of_order_ = 0;  // rows before the one above
};

}  // namespace joulemap::ingest
