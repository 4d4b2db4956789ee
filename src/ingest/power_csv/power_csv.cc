// SPDX-License-Identifier: Apache-2.0
//
// Reads CSV with the header time_unix_ns,domain,kind,value. Passes other texts to the reader of nvidia-smi's logs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "ingest/power_csv/power_log.h"
#include "ingest/power_csv/power_rows.h"

namespace joulemap::ingest {
namespace {

constexpr std::array<std::string_view, 4> kPowerCsvHeader = {"time_unix_ns", "domain", "kind", "value"};
constexpr double kMicroFactor = 1e-6;
// The year 1990: earlier times are probably in seconds, milliseconds or microseconds. Synthetic logs may begin at 0.
constexpr std::int64_t kEarliestUnixTime_ns = 631'152'000'000'000'000;

// Returns the column of each member of kPowerCsvHeader, in that order; nullopt if one is missing.
std::optional<std::array<std::size_t, 4>> find_power_columns(const std::vector<std::string>& header) {
  std::array<std::size_t, 4> columns{};
  for (std::size_t i = 0; i < kPowerCsvHeader.size(); ++i) {
    const auto matching_column = std::find(header.begin(), header.end(), kPowerCsvHeader[i]);
    if (matching_column == header.end()) return std::nullopt;
    columns[i] = static_cast<std::size_t>(matching_column - header.begin());
  }
  return columns;
}

class PowerCsvReader {
 public:
  PowerCsvReader(std::string_view name, std::string_view separator, std::size_t column_count,
                 std::array<std::size_t, 4> columns)
      : log_builder_(name), name_(name), separator_(separator), column_count_(column_count), column_indices_(columns) {}

  void parse_log_line(std::string_view line) {
    std::vector<std::string> fields = split_csv_fields(line, separator_);
    log_builder_.count_row();
    while (fields.size() > column_count_ && fields.back().empty()) fields.pop_back();
    // Such as an unquoted decimal comma, which would cut the value.
    if (fields.size() > column_count_) return log_builder_.drop_row("the row has more fields than the header");
    if (*std::max_element(column_indices_.begin(), column_indices_.end()) >= fields.size())
      return log_builder_.drop_row("the row is too short");
    const std::optional<std::int64_t> time_ns = parse_time_ns(fields[column_indices_[0]]);
    const std::optional<double> value = parse_non_negative(fields[column_indices_[3]]);
    const std::string& domain = fields[column_indices_[1]];
    const std::string& kind = fields[column_indices_[2]];
    if (!time_ns) return log_builder_.drop_row("the time is not a number of nanoseconds");
    if (domain.empty()) return log_builder_.drop_row("the domain is missing");
    if (kind != "energy_j" && kind != "power_w")
      return log_builder_.drop_row("the kind is neither energy_j nor power_w");
    if (!value) return log_builder_.drop_row("the value is not a non-negative number");
    const bool is_counter = kind == "energy_j";
    const std::uint32_t channel =
        log_builder_.channel(to_valid_utf8(domain) + (is_counter ? "-energy" : "-power"), [&] {
          Channel csv_channel;
          csv_channel.sensor = "csv";
          csv_channel.source = std::string(kind);
          csv_channel.domain = to_valid_utf8(domain);
          csv_channel.kind = is_counter ? ChannelKind::counter : ChannelKind::gauge;
          csv_channel.quantity = is_counter ? Quantity::energy : Quantity::power;
          csv_channel.scale = kMicroFactor;
          set_domain_class_from_name(csv_channel);
          return csv_channel;
        });
    log_builder_.add_value(channel, *time_ns, *value);
    latest_time_ns_ = std::max(latest_time_ns_.value_or(*time_ns), *time_ns);
  }

  Result<PowerLog> finish() {
    if (latest_time_ns_ && *latest_time_ns_ < kEarliestUnixTime_ns) {
      log_builder_.diagnostics().add(
          {"power_before_1990", 1,
           fmt::format("{}: the last time_unix_ns is {}, which is before 1990: is it in nanoseconds?", name_,
                       *latest_time_ns_),
           "write time_unix_ns in nanoseconds: times in seconds need nine more digits"});
    }
    return log_builder_.finish(true);
  }

 private:
  PowerLogBuilder log_builder_;
  std::string name_;
  std::string_view separator_;
  std::size_t column_count_;
  std::optional<std::int64_t> latest_time_ns_;  // of all accepted rows
  std::array<std::size_t, 4> column_indices_;
};

}  // namespace

Result<PowerLog> parse_power_log(std::string_view text, std::string_view name,
                                 std::optional<std::int64_t> utc_offset_s) {
  std::optional<PowerCsvReader> reader;
  bool is_first = true;
  for_each_line(text, [&](std::string_view line) {
    if (is_first) {
      const std::string_view separator = find_field_separator(line);
      const std::vector<std::string> header = split_csv_fields(line, separator);
      if (const auto columns = find_power_columns(header)) reader.emplace(name, separator, header.size(), *columns);
    } else if (reader) {
      reader->parse_log_line(line);
    }
    is_first = false;
  });
  return reader ? reader->finish() : parse_nvidia_smi_log(text, name, utc_offset_s);
}

}  // namespace joulemap::ingest
