// SPDX-License-Identifier: Apache-2.0
//
// What a run is exported to: one table of formats, a file each (<format>_export.cc). Each gives the bytes of a file that
// readers of others take; what a format cannot say is left out, never 0. A run that does not hold what a format shows
// gives an error that says how to record it. Pure: the same run gives the same bytes. docs/export.md says what is in them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/run_view.h"

namespace joulemap::report {

struct ExportQuery {
  std::string by;  // level of stacks and tables; empty: layers. Tables: step, epoch, domain, power, too
};

// Which levels of rows a format shows.
enum class ExportLevels { none, one /* that of the query */, all };

struct ExportFormat {
  std::string_view name;
  std::string_view summary;
  bool is_text = false;  // can be shown on a terminal
  ExportLevels levels = ExportLevels::none;
  Result<std::string> (*bytes_of)(const RunView& view, const ExportQuery& query) = nullptr;
};

// All but TensorBoard's, whose files lie in folders (tensorboard_export.h).
std::span<const ExportFormat> export_formats();
const ExportFormat* export_format(std::string_view name);

Result<std::string> perfetto_bytes(const RunView& view, const ExportQuery& query);
Result<std::string> pprof_bytes(const RunView& view, const ExportQuery& query);
Result<std::string> folded_text(const RunView& view, const ExportQuery& query);
Result<std::string> speedscope_json(const RunView& view, const ExportQuery& query);
Result<std::string> dot_text(const RunView& view, const ExportQuery& query);
Result<std::string> csv_text(const RunView& view, const ExportQuery& query);
Result<std::string> sqlite_bytes(const RunView& view, const ExportQuery& query);

// Where stacks would all be empty.
Error no_energies(std::string_view by);
// The command, as one text.
std::string subject_of(const ReportResult& run);
// "train backward layer4.0.conv2".
std::string path_text(const std::vector<std::string>& path);

}  // namespace joulemap::report
