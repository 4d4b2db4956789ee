// SPDX-License-Identifier: Apache-2.0
//
// Exports of a run: one table of formats, one source file each (<format>_export.cc). Each function returns the bytes of
// a file for an external tool; values that a format cannot express are left out, never 0. If the run lacks the data,
// the error explains how to record it. Pure: the same run gives the same bytes. docs/export.md describes the contents.
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
  std::string by;  // level of stacks and tables; empty: layers. Tables also accept step, epoch, domain, power
};

// The levels of rows that a format exports.
enum class ExportLevels { none, requested /* the level of the query */, all };

struct ExportFormat {
  std::string_view name;
  std::string_view summary;
  bool is_text = false;  // can be printed on a terminal
  ExportLevels levels = ExportLevels::none;
  Result<std::string> (*serialize)(const RunView& view, const ExportOptions& options) = nullptr;
};

// All formats except TensorBoard, whose files lie in folders (tensorboard_export.h).
std::span<const ExportFormat> export_formats();
const ExportFormat* find_export_format(std::string_view name);

Result<std::string> perfetto_bytes(const RunView& view, const ExportOptions& options);
Result<std::string> pprof_bytes(const RunView& view, const ExportOptions& options);
Result<std::string> folded_stacks_text(const RunView& view, const ExportOptions& options);
Result<std::string> speedscope_json(const RunView& view, const ExportOptions& options);
Result<std::string> graphviz_dot_text(const RunView& view, const ExportOptions& options);
Result<std::string> csv_text(const RunView& view, const ExportOptions& options);
Result<std::string> sqlite_bytes(const RunView& view, const ExportOptions& options);

// Error for stacks that would all be empty.
Error missing_energy_error(std::string_view by);
// The command as one string.
std::string command_text(const ReportResult& run);
// "train backward layer4.0.conv2".
std::string path_text(const std::vector<std::string>& path);

}  // namespace joulemap::report
