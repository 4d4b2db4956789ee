// SPDX-License-Identifier: Apache-2.0
#include "ingest/epoch_logs/epoch_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/text.h"
#include "ingest/power_csv/power_rows.h"

namespace joulemap::ingest {
namespace {

struct EpochLogColumns {
  std::size_t time_column = 0;
  std::vector<std::size_t> metric_columns;
  std::vector<std::string> metric_names;
};

std::optional<EpochLogColumns> find_epoch_columns(const std::vector<std::string>& header) {
  EpochLogColumns columns;
  bool has_epoch = false;
  bool has_time = false;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == "epoch") {
      has_epoch = true;
    } else if (header[i] == "timestamp") {
      has_time = true;
      columns.time_column = i;
    } else {
      columns.metric_columns.push_back(i);
      columns.metric_names.push_back(to_valid_utf8(header[i]));
    }
  }
  return has_epoch && has_time ? std::optional(std::move(columns)) : std::nullopt;
}

// Columns of `appended`, in the order of `reference_columns`; names that `reference_columns` lacks follow.
EpochLogColumns match_appended_columns(const EpochLogColumns& reference_columns, const EpochLogColumns& appended) {
  EpochLogColumns columns{appended.time_column,
                          std::vector<std::size_t>(reference_columns.metric_names.size(), SIZE_MAX),
                          reference_columns.metric_names};
  for (std::size_t i = 0; i < appended.metric_names.size(); ++i) {
    const auto metric_name = std::ranges::find(columns.metric_names, appended.metric_names[i]);
    if (metric_name != columns.metric_names.end()) {
      columns.metric_columns[static_cast<std::size_t>(metric_name - columns.metric_names.begin())] =
          appended.metric_columns[i];
    } else {
      columns.metric_names.push_back(appended.metric_names[i]);
      columns.metric_columns.push_back(appended.metric_columns[i]);
    }
  }
  return columns;
}

bool is_whole_second_time(std::string_view text) { return text.find('.') == std::string_view::npos; }

}  // namespace

Result<EpochLog> parse_epoch_log(std::string_view text, std::string_view name,
                                 std::optional<std::int64_t> utc_offset_s) {
  EpochLog log;
  std::optional<EpochLogColumns> columns;
  std::string_view separator;  // of the header
  std::uint64_t dropped_line_count = 0;
  bool is_truncated = false;
  for_each_line(text, [&](std::string_view line) {
    if (!columns) separator = find_field_separator(line);
    const std::vector<std::string> fields = split_csv_fields(line, separator);
    if (!columns) {
      columns = find_epoch_columns(fields);
      return;
    }
    const std::optional<std::int64_t> time_ns = columns->time_column < fields.size()
                                                    ? parse_wall_time(fields[columns->time_column], utc_offset_s)
                                                    : std::nullopt;
    if (!time_ns) {
      // A repeated header: a second run was appended, which may have other columns.
      if (const std::optional<EpochLogColumns> appended = find_epoch_columns(fields)) {
        columns = match_appended_columns(*columns, *appended);
      } else {
        ++dropped_line_count;
      }
      return;
    }
    EpochEnd end{*time_ns, {}};
    if (is_whole_second_time(fields[columns->time_column])) {
      end.time_ns += kNanosecondsPerSecond / 2;
      is_truncated = true;
    }
    for (const std::size_t column : columns->metric_columns) {
      end.metric_values.push_back(column < fields.size() ? parse_double(fields[column]) : std::nullopt);
    }
    log.epoch_ends.push_back(std::move(end));
  });
  if (!columns) {
    return Error{ErrorCode::malformed, fmt::format("{} is not an epoch log", name),
                 "its header must contain epoch and timestamp: epoch;accuracy;timestamp"};
  }
  log.metric_names = columns->metric_names;
  for (EpochEnd& end : log.epoch_ends) end.metric_values.resize(log.metric_names.size());
  std::stable_sort(log.epoch_ends.begin(), log.epoch_ends.end(),
                   [](const EpochEnd& a, const EpochEnd& b) { return a.time_ns < b.time_ns; });
  if (dropped_line_count > 0)
    log.diagnostics.add({"epochs_dropped", dropped_line_count, fmt::format("lines of {} have no time", name), ""});
  if (is_truncated) {
    log.diagnostics.add(
        {"epoch_times_cut", 1,
         "epochs end at whole seconds in the log, so each end may be half a second off, and the energy accordingly",
         "write timestamps with fractions of a second"});
  }
  return log;
}

bool is_higher_better(std::string_view metric) {
  constexpr std::array<std::string_view, 6> kLowerIsBetterMetrics = {"loss", "error", "perplexity",
                                                                     "mse",  "mae",   "wer"};
  return std::none_of(kLowerIsBetterMetrics.begin(), kLowerIsBetterMetrics.end(),
                      [&](std::string_view word) { return metric.find(word) != std::string_view::npos; });
}

}  // namespace joulemap::ingest
