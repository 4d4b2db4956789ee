// SPDX-License-Identifier: Apache-2.0
#include "report/text/epoch_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/amount_text.h"
#include "report/text/analysis_tables.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kMaxShownEpochs = 3;  // of a cell, in tables for people

std::string full_precision_epoch_cell(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string epoch_amount_text(const std::optional<double>& value, std::string_view unit) {
  return value ? amount_text(*value, unit) : "-";
}

std::string rounded_epoch_cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "-";
}

// Indices of at most kMaxShownEpochs of `count` epochs, evenly spaced, with the first and the last.
std::vector<std::size_t> select_shown_epochs(std::size_t count) {
  std::vector<std::size_t> epoch_indices;
  const std::size_t rows = std::min(count, kMaxShownEpochs);
  for (std::size_t i = 0; i < rows; ++i) epoch_indices.push_back(rows == 1 ? 0 : i * (count - 1) / (rows - 1));
  return epoch_indices;
}

// A column of the short table: its index in AnalysisResult::epoch_columns.
struct ShortEpochColumn {
  std::size_t index = 0;
  std::string header;
};

std::vector<ShortEpochColumn> short_epoch_columns(const AnalysisResult& result) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kShortNames = {
      {{"gpu_utilization", "GPU %"}, {"memory_used", "MiB"}, {"temperature", "degC"}}};
  std::vector<ShortEpochColumn> columns;
  std::optional<ShortEpochColumn> metric;
  for (std::size_t i = 0; i < result.epoch_columns.size(); ++i) {
    const std::string& name = result.epoch_columns[i].name;
    const auto short_name = std::ranges::find(kShortNames, name, &std::pair<std::string_view, std::string_view>::first);
    const bool is_gauge = std::ranges::find(kGauges, name, &Gauge::name) != kGauges.end();
    if (short_name != kShortNames.end()) columns.push_back({i, std::string(short_name->second)});
    if (!is_gauge && (!metric || name == "accuracy")) metric = ShortEpochColumn{i, name};
  }
  if (metric) columns.push_back(*metric);
  return columns;
}

}  // namespace

TextTable short_epochs_table(const AnalysisResult& result) {
  TextTable table{"", {"cell", "epoch", "energy", "power"}, {false, true, true, true}, {}};
  const std::vector<ShortEpochColumn> columns = short_epoch_columns(result);
  for (const ShortEpochColumn& column : columns) {
    table.column_headers.push_back(column.header);
    table.is_number.push_back(true);
  }
  for (const AnalysisCell& cell : result.cells) {
    for (const std::size_t index : select_shown_epochs(cell.epoch_means.size())) {
      const EpochMean& epoch = cell.epoch_means[index];
      std::vector<std::string> row = {short_levels_text(result, cell.levels), fmt::format("{}", epoch.number),
                                      epoch_amount_text(epoch.energy_j, "J"), epoch_amount_text(epoch.power_w, "W")};
      for (const ShortEpochColumn& column : columns) row.push_back(rounded_epoch_cell(epoch.values[column.index]));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

TextTable epoch_means_table(const AnalysisResult& result) {
  TextTable table{"Epochs: means over rows",
                  {"cell", "epoch", "n", "energy", "time", "power"},
                  {false, true, true, true, true, true},
                  {}};
  for (const EpochColumn& column : result.epoch_columns) {
    table.column_headers.push_back(column.unit.empty() ? column.name : fmt::format("{} {}", column.name, column.unit));
    table.is_number.push_back(true);
  }
  for (const AnalysisCell& cell : result.cells) {
    for (const std::size_t index : select_shown_epochs(cell.epoch_means.size())) {
      const EpochMean& epoch = cell.epoch_means[index];
      std::vector<std::string> row = {short_levels_text(result, cell.levels),
                                      fmt::format("{}", epoch.number),
                                      fmt::format("{}", epoch.n),
                                      epoch_amount_text(epoch.energy_j, "J"),
                                      epoch_amount_text(epoch.time_s, "s"),
                                      epoch_amount_text(epoch.power_w, "W")};
      for (const std::optional<double>& value : epoch.values) row.push_back(rounded_epoch_cell(value));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

TextTable full_precision_epochs_table(const AnalysisResult& result) {
  TextTable table;
  for (const ExperimentFactor& factor : result.factors) table.column_headers.push_back(factor.name);
  for (const char* head : {"epoch", "n", "energy_j", "time_s", "power_w"}) table.column_headers.emplace_back(head);
  for (const EpochColumn& column : result.epoch_columns) table.column_headers.push_back(column.name);
  for (const AnalysisCell& cell : result.cells) {
    for (const EpochMean& epoch : cell.epoch_means) {
      std::vector<std::string> row;
      for (std::size_t i = 0; i < cell.levels.size(); ++i) row.push_back(result.factors[i].levels[cell.levels[i]]);
      row.insert(row.end(), {fmt::format("{}", epoch.number), fmt::format("{}", epoch.n),
                             full_precision_epoch_cell(epoch.energy_j), full_precision_epoch_cell(epoch.time_s),
                             full_precision_epoch_cell(epoch.power_w)});
      for (const std::optional<double>& value : epoch.values) row.push_back(full_precision_epoch_cell(value));
      table.rows.push_back(std::move(row));
    }
  }
  table.is_number.assign(table.column_headers.size(), false);
  return table;
}

}  // namespace joulemap::report
