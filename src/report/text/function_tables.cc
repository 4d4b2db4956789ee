// SPDX-License-Identifier: Apache-2.0
#include "report/text/function_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/amount_text.h"
#include "report/text/analysis_tables.h"
#include "report/text/text_style.h"

namespace joulemap::report {
namespace {

// Maximum number of functions per device and cell in documents and pages.
constexpr std::size_t kMaxFunctionsShown = 8;
constexpr std::size_t kFunctionNameWidth = 48;

std::string full_precision_function_cell(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string percent_cell(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

std::optional<double> largest_cause_share(const CellFunctionMean& function_mean) {
  if (!function_mean.cause || function_mean.cause->times_s.sum() <= 0) return std::nullopt;
  return function_mean.cause->times_s[function_mean.cause->largest_class] / function_mean.cause->times_s.sum();
}

std::vector<const CellFunctionMean*> select_largest_functions(const AnalysisCell& cell, std::size_t max_functions) {
  std::vector<const CellFunctionMean*> functions;
  std::map<std::string, std::size_t> device_function_counts;
  for (const CellFunctionMean& function_mean : cell.functions) {
    if (device_function_counts[function_mean.device]++ < max_functions) functions.push_back(&function_mean);
  }
  return functions;
}

bool has_cumulative_times(const AnalysisCell& cell) {
  return std::ranges::any_of(
      cell.functions, [](const CellFunctionMean& function_mean) { return function_mean.cumulative_s.has_value(); });
}

std::string time_cell(const std::optional<double>& time_s) { return time_s ? amount_text(*time_s, "s") : "-"; }

// Inserts a column of cumulative times after that of own times.
void add_cumulative_column(TextTable& table, std::size_t column) {
  const auto column_offset = static_cast<std::ptrdiff_t>(column);
  table.column_headers.insert(table.column_headers.begin() + column_offset, "cumulative");
  table.is_number.insert(table.is_number.begin() + column_offset, true);
  table.column_headers[column - 1] = "own time";
}

std::string energy_cell(const CellFunctionMean& function_mean) {
  return function_mean.energy_j ? amount_text(*function_mean.energy_j, "J") : "-";
}
std::string call_count_cell(const CellFunctionMean& function_mean) {
  return function_mean.count ? fmt::format("{:.0f}", *function_mean.count) : "-";
}
std::string largest_cause_cell(const CellFunctionMean& function_mean) {
  return function_mean.cause ? std::string(to_string(function_mean.cause->largest_class)) : "-";
}
std::string cause_basis_cell(const CellFunctionMean& function_mean) {
  return function_mean.cause ? std::string(to_string(function_mean.cause->basis)) : "-";
}

// Of a profile without energies, neither the energies nor the device and the basis of causes, which are all the same.
TextTable functions_of_cell_table(const AnalysisCell& cell, std::size_t max_functions) {
  TextTable table{"", {"function", "own time", "cumulative", "calls", "cause"}, {false, true, true, true, false}, {}};
  for (const CellFunctionMean* const function_mean : select_largest_functions(cell, max_functions)) {
    table.rows.push_back({function_mean->name, amount_text(function_mean->time_s, "s"),
                          time_cell(function_mean->cumulative_s), call_count_cell(*function_mean),
                          largest_cause_cell(*function_mean)});
  }
  return table;
}

}  // namespace

std::string functions_title(const AnalysisResult& result) {
  for (const AnalysisCell& cell : result.cells) {
    for (const CellFunctionMean& function_mean : cell.functions) {
      if (function_mean.energy_j) return "Functions with the highest energy, with causes";
    }
  }
  return "Functions with the longest own time, with causes";
}

TextTable functions_table(const AnalysisResult& result) {
  TextTable table{functions_title(result) + ": means per row",
                  {"cell", "function", "device", "energy", "share", "time", "calls", "cause", "of time", "cause basis"},
                  {false, false, false, true, true, true, true, false, true, false},
                  {}};
  constexpr std::size_t kCumulativeColumn = 6;
  const bool has_cumulative = std::ranges::any_of(result.cells, has_cumulative_times);
  if (has_cumulative) add_cumulative_column(table, kCumulativeColumn);
  for (const AnalysisCell& cell : result.cells) {
    for (const CellFunctionMean* const function_mean : select_largest_functions(cell, kMaxFunctionsShown)) {
      std::vector<std::string> row = {short_levels_text(result, cell.levels),
                                      shorten_to_columns(function_mean->name, kFunctionNameWidth),
                                      function_mean->device,
                                      energy_cell(*function_mean),
                                      percent_cell(function_mean->share),
                                      amount_text(function_mean->time_s, "s")};
      if (has_cumulative) row.push_back(time_cell(function_mean->cumulative_s));
      row.insert(row.end(), {call_count_cell(*function_mean), largest_cause_cell(*function_mean),
                             percent_cell(largest_cause_share(*function_mean)), cause_basis_cell(*function_mean)});
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

TextTable costliest_functions_table(const AnalysisCell& cell, std::size_t max_functions) {
  const bool has_energy = std::ranges::any_of(
      cell.functions, [](const CellFunctionMean& function_mean) { return function_mean.energy_j.has_value(); });
  const bool has_cumulative = has_cumulative_times(cell);
  if (!has_energy && has_cumulative) return functions_of_cell_table(cell, max_functions);
  TextTable table{"",
                  {"function", "device", "energy", "time", "calls", "cause", "basis"},
                  {false, false, true, true, true, false, false},
                  {}};
  constexpr std::size_t kCumulativeColumn = 4;
  if (has_cumulative) add_cumulative_column(table, kCumulativeColumn);
  for (const CellFunctionMean* const function_mean : select_largest_functions(cell, max_functions)) {
    std::vector<std::string> row = {function_mean->name, function_mean->device, energy_cell(*function_mean),
                                    amount_text(function_mean->time_s, "s")};
    if (has_cumulative) row.push_back(time_cell(function_mean->cumulative_s));
    row.insert(row.end(),
               {call_count_cell(*function_mean), largest_cause_cell(*function_mean), cause_basis_cell(*function_mean)});
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable full_precision_functions_table(const AnalysisResult& result) {
  TextTable table;
  for (const ExperimentFactor& factor : result.factors) table.column_headers.push_back(factor.name);
  for (const char* head : {"function", "device", "n", "count", "time_s", "energy_j", "share", "cause", "cause_basis"}) {
    table.column_headers.emplace_back(head);
  }
  for (const EnergyCauseClass cause_class : kCauseClasses)
    table.column_headers.push_back(fmt::format("{}_s", to_string(cause_class)));
  table.column_headers.emplace_back("cumulative_s");
  for (const AnalysisCell& cell : result.cells) {
    for (const CellFunctionMean& function_mean : cell.functions) {
      std::vector<std::string> row;
      for (std::size_t i = 0; i < cell.levels.size(); ++i) row.push_back(result.factors[i].levels[cell.levels[i]]);
      row.insert(
          row.end(),
          {function_mean.name, function_mean.device, fmt::format("{}", function_mean.n),
           full_precision_function_cell(function_mean.count), full_precision_function_cell(function_mean.time_s),
           full_precision_function_cell(function_mean.energy_j), full_precision_function_cell(function_mean.share)});
      row.emplace_back(function_mean.cause ? to_string(function_mean.cause->largest_class) : "");
      row.emplace_back(function_mean.cause ? to_string(function_mean.cause->basis) : "");
      for (const EnergyCauseClass cause_class : kCauseClasses)
        row.push_back(function_mean.cause ? full_precision_function_cell(function_mean.cause->times_s[cause_class])
                                          : "");
      row.push_back(full_precision_function_cell(function_mean.cumulative_s));
      table.rows.push_back(std::move(row));
    }
  }
  table.is_number.assign(table.column_headers.size(), false);
  return table;
}

}  // namespace joulemap::report
