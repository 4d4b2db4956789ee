// SPDX-License-Identifier: Apache-2.0
//
// `joulemap export`: a table of formats; <format>_export.cc implements each. A format function returns the bytes of a
// file for another tool. Unknown values are left out; pprof, which has no such values, contains 0 and a comment. If the
// run lacks the data, the error explains what to do. Pure: the same run gives the same bytes. docs/reference/exports.md
// describes the contents.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/run_view.h"

namespace joulemap::report {

struct ExportOptions {
  std::string by;  // level of stacks and tables; empty: layer. For csv also step, epoch, layer-step, domain, power
};

// The levels of rows that a format contains.
enum class ExportLevels { none, requested /* the level of the query */, all };

struct ExportFormat {
  std::string_view name;
  std::string_view summary;
  bool is_text = false;  // the bytes are text and may be printed on a terminal
  ExportLevels exported_levels = ExportLevels::none;
  Result<std::string> (*serialize_view)(const RunView& view, const ExportOptions& options) = nullptr;
};

// All formats except TensorBoard, which writes into a folder (tensorboard_export.h), and Parquet, which Python writes.
std::span<const ExportFormat> export_formats();
// Null if there is no such format.
const ExportFormat* find_export_format(std::string_view name);

Result<std::string> perfetto_bytes(const RunView& view, const ExportOptions& options);
Result<std::string> pprof_bytes(const RunView& view, const ExportOptions& options);
Result<std::string> folded_stacks_text(const RunView& view, const ExportOptions& options);
Result<std::string> speedscope_json(const RunView& view, const ExportOptions& options);
Result<std::string> graphviz_dot_text(const RunView& view, const ExportOptions& options);
Result<std::string> csv_text(const RunView& view, const ExportOptions& options);
Result<std::string> sqlite_bytes(const RunView& view, const ExportOptions& options);

// The error of an export by stacks if no stack has energy.
Error missing_energy_error(std::string_view level_name);
// The command of the run as one string; "a recording" if it is unknown.
std::string command_text(const ReportResult& run);
// A path as one string: "train backward layer4.0.conv2".
std::string scope_path_text(const std::vector<std::string>& path);

}  // namespace joulemap::report
