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

struct Columns {
  std::size_t time = 0;
  std::vector<std::size_t> metrics;
  std::vector<std::string> names;
};

std::optional<Columns> columns_of(const std::vector<std::string>& header) {
  Columns columns;
  bool has_epoch = false;
  bool has_time = false;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == "epoch") {
      has_epoch = true;
    } else if (header[i] == "timestamp") {
      has_time = true;
      columns.time = i;
    } else {
      columns.metrics.push_back(i);
      columns.names.push_back(to_valid_utf8(header[i]));
    }
  }
  return has_epoch && has_time ? std::optional(std::move(columns)) : std::nullopt;
}

// Columns of `appended`, in the order of `first`; names that `first` lacks follow.
Columns matched_columns(const Columns& first, const Columns& appended) {
  Columns columns{appended.time, std::vector<std::size_t>(first.names.size(), SIZE_MAX), first.names};
  for (std::size_t i = 0; i < appended.names.size(); ++i) {
    const auto known = std::ranges::find(columns.names, appended.names[i]);
    if (known != columns.names.end()) {
      columns.metrics[static_cast<std::size_t>(known - columns.names.begin())] = appended.metrics[i];
    } else {
      columns.names.push_back(appended.names[i]);
      columns.metrics.push_back(appended.metrics[i]);
    }
  }
  return columns;
}

bool is_whole_second(std::string_view text) { return text.find('.') == std::string_view::npos; }

}  // namespace

Result<EpochLog> parse_epoch_log(std::string_view text, std::string_view name,
                                 std::optional<std::int64_t> utc_offset_s) {
  EpochLog log;
  std::optional<Columns> columns;
  std::uint64_t dropped = 0;
  bool is_truncated = false;
  for_each_line(text, [&](std::string_view line) {
    const std::vector<std::string> fields = split_fields(line);
    if (!columns) {
      columns = columns_of(fields);
      return;
    }
    const std::optional<std::int64_t> time_ns =
        columns->time < fields.size() ? parse_wall_time(fields[columns->time], utc_offset_s) : std::nullopt;
    if (!time_ns) {
      // A repeated header: a second run was appended, which may have other columns.
      if (const std::optional<Columns> appended = columns_of(fields)) {
        columns = matched_columns(*columns, *appended);
      } else {
        ++dropped;
      }
      return;
    }
    EpochEnd end{*time_ns, {}};
    if (is_whole_second(fields[columns->time])) {
      end.time_ns += kNanosecondsPerSecond / 2;
      is_truncated = true;
    }
    for (const std::size_t column : columns->metrics) {
      end.metrics.push_back(column < fields.size() ? parse_double(fields[column]) : std::nullopt);
    }
    log.epochs.push_back(std::move(end));
  });
  if (!columns) {
    return Error{ErrorCode::malformed, fmt::format("{} is not an epoch log", name),
                 "its header must contain epoch and timestamp: epoch;accuracy;timestamp"};
  }
  log.metrics = columns->names;
  for (EpochEnd& end : log.epochs) end.metrics.resize(log.metrics.size());
  std::stable_sort(log.epochs.begin(), log.epochs.end(),
                   [](const EpochEnd& a, const EpochEnd& b) { return a.time_ns < b.time_ns; });
  if (dropped > 0) log.diagnostics.add({"epochs_dropped", dropped, fmt::format("lines of {} have no time", name), ""});
  if (is_truncated) {
    log.diagnostics.add(
        {"epoch_times_cut", 1,
         "epochs end at whole seconds in the log, so each end may be half a second off, and the energy accordingly",
         "write timestamps with fractions of a second"});
  }
  return log;
}

bool is_higher_better(std::string_view metric) {
  constexpr std::array<std::string_view, 6> kLess = {"loss", "error", "perplexity", "mse", "mae", "wer"};
  return std::none_of(kLess.begin(), kLess.end(),
                      [&](std::string_view word) { return metric.find(word) != std::string_view::npos; });
}

}  // namespace joulemap::ingest
