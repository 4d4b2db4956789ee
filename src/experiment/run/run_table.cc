// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/run_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "formats/csv.h"

namespace joulemap::experiment {
namespace {

constexpr std::size_t kColumnCountBeforeFactors = 4;  // __run_id,__done,row,block

formats::CsvRecord run_table_header(const std::vector<ExperimentFactor>& factors) {
  formats::CsvRecord header{"__run_id", "__done", "row", "block"};
  for (const ExperimentFactor& factor : factors) header.push_back(factor.name);
  header.emplace_back("attempts");
  return header;
}

std::optional<ExperimentRowState> parse_row_state(std::string_view word) {
  for (const ExperimentRowState state :
       {ExperimentRowState::todo, ExperimentRowState::running, ExperimentRowState::done, ExperimentRowState::failed}) {
    if (row_state_text(state) == word) return state;
  }
  return std::nullopt;
}

// "run_3_repetition_7" -> 3. Tables of other programs can use any row name.
std::size_t parse_cell_number(std::string_view run_id) {
  const std::vector<std::string_view> parts = split(run_id, '_');
  return parts.size() > 1 ? parse_u64(parts[1]).value_or(0) : 0;
}

Result<RunTableRow> parse_run_table_row(const formats::CsvRecord& record,
                                        const std::vector<ExperimentFactor>& factors) {
  RunTableRow row;
  const std::optional<ExperimentRowState> state = parse_row_state(record[1]);
  const std::optional<std::uint64_t> block = parse_u64(record[3]);
  const std::optional<std::uint64_t> attempts = parse_u64(record.back());
  if (!state || !block || !attempts)
    return Error{ErrorCode::malformed, "invalid value of __done, block or attempts", ""};
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const std::vector<std::string>& levels = factors[i].levels;
    const auto level = std::find(levels.begin(), levels.end(), record[kColumnCountBeforeFactors + i]);
    if (level == levels.end()) {
      return Error{
          ErrorCode::malformed,
          fmt::format("{} has no level {}", factors[i].name, joulemap::quoted(record[kColumnCountBeforeFactors + i])),
          ""};
    }
    row.planned_row.levels.push_back(static_cast<std::size_t>(level - levels.begin()));
  }
  row.planned_row.cell_index = parse_cell_number(record[0]);
  row.planned_row.block_number = *block;
  row.state = *state;
  row.attempt_count = static_cast<std::uint32_t>(*attempts);
  return row;
}

}  // namespace

std::string_view row_state_text(ExperimentRowState state) {
  switch (state) {
    case ExperimentRowState::todo:
      return "TODO";
    case ExperimentRowState::running:
      return "RUNNING";
    case ExperimentRowState::done:
      return "DONE";
    case ExperimentRowState::failed:
      return "FAILED";
  }
  return "";
}

std::string run_table_csv(const std::vector<ExperimentFactor>& factors, const std::vector<RunTableRow>& rows) {
  std::string csv = formats::csv_line(run_table_header(factors));
  for (std::size_t number = 0; number < rows.size(); ++number) {
    const RunTableRow& row = rows[number];
    formats::CsvRecord record{
        fmt::format("run_{}_repetition_{}", row.planned_row.cell_index, row.planned_row.block_number),
        std::string(row_state_text(row.state)), fmt::format("{}", number),
        fmt::format("{}", row.planned_row.block_number)};
    for (std::size_t i = 0; i < factors.size(); ++i)
      record.push_back(factors[i].levels.at(row.planned_row.levels.at(i)));
    record.push_back(fmt::format("{}", row.attempt_count));
    csv += formats::csv_line(record);
  }
  return csv;
}

Result<std::vector<RunTableRow>> parse_run_table(std::string_view csv, const std::vector<ExperimentFactor>& factors) {
  const std::vector<formats::CsvRecord> records = formats::read_csv(csv);
  const formats::CsvRecord header = run_table_header(factors);
  if (records.empty() || records.front() != header) {
    std::string expected = formats::csv_line(header);
    expected.pop_back();
    return Error{ErrorCode::malformed,
                 fmt::format("run_table.csv does not match experiment.toml: the header must start with {}", expected),
                 "do not change the plan of a folder: change a copy and create another folder"};
  }
  std::vector<RunTableRow> rows;
  for (std::size_t line = 1; line < records.size(); ++line) {
    const bool is_whole = records[line].size() == header.size();
    Result<RunTableRow> row = is_whole
                                  ? parse_run_table_row(records[line], factors)
                                  : Result<RunTableRow>(Error{ErrorCode::malformed, "too few or too many columns", ""});
    if (!row) return std::move(row).error().with_context(fmt::format("run_table.csv:{}", line + 1));
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace joulemap::experiment
