// SPDX-License-Identifier: Apache-2.0
#include "predict/fit/table.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace joulemap::predict {

Result<Operation> parse_operation(const CsvColumns& columns, const formats::CsvRecord& record) {
  Operation operation;
  const auto kind = kind_from_name(columns.text(record, "kind"));
  const auto dtype = dtype_from_name(columns.text(record, "dtype"));
  const auto pass = pass_from_name(columns.text(record, "pass"));
  if (!kind || !dtype || !pass) {
    return Error{ErrorCode::malformed,
                 fmt::format("unknown kind \"{}\", type \"{}\" or pass \"{}\" in a row", columns.text(record, "kind"),
                             columns.text(record, "dtype"), columns.text(record, "pass")),
                 ""};
  }
  Result<FormAndParameters> form_and_parameters = parse_parameters(columns.text(record, "parameters"));
  if (!form_and_parameters) return std::move(form_and_parameters).error();
  operation.kind = *kind;
  operation.dtype = *dtype;
  operation.pass = *pass;
  operation.form = std::move(form_and_parameters->form);
  operation.parameters = std::move(form_and_parameters->parameters);
  if (columns.text(record, "parameters").find("way=fused") != std::string::npos) operation.parameters.set("fused", 1);
  if (columns.text(record, "parameters").find("way=one-by-one") != std::string::npos)
    operation.parameters.set("foreach", 0);
  return operation;
}

Result<CsvTable> read_table(std::string_view csv, std::span<const std::string_view> needed) {
  std::vector<formats::CsvRecord> records = formats::read_csv(csv);
  if (records.empty())
    return Error{ErrorCode::malformed, "the table is empty", "run python -m joulemap collect --tables"};
  CsvTable table{CsvColumns(records.front()), {}};
  if (const auto first_missing_column = table.columns.first_missing_column(needed)) {
    return Error{ErrorCode::malformed, fmt::format("the table has no column {}", *first_missing_column),
                 "run python -m joulemap collect --tables"};
  }
  table.records.assign(std::make_move_iterator(records.begin() + 1), std::make_move_iterator(records.end()));
  return table;
}

}  // namespace joulemap::predict
