// SPDX-License-Identifier: Apache-2.0
#include "report/export/exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace joulemap::report {
namespace {

constexpr std::array<ExportFormat, 7> kExportFormats = {{
    {"perfetto", "power counters, steps and phases", false, ExportLevels::none, &perfetto_bytes},
    {"pprof", "stacks with energy, time and calls", false, ExportLevels::requested, &pprof_bytes},
    {"folded", "stacks in microjoules, for flame graphs", true, ExportLevels::requested, &folded_stacks_text},
    {"speedscope", "stacks in joules and in seconds", true, ExportLevels::requested, &speedscope_json},
    {"dot", "call graph with energy and causes, for Graphviz", true, ExportLevels::requested, &graphviz_dot_text},
    {"csv", "one table", true, ExportLevels::requested, &csv_text},
    {"sqlite", "all tables", false, ExportLevels::all, &sqlite_bytes},
}};

std::string join_parts(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? std::string() : std::string(separator)) + part;
  return to_valid_utf8(out);
}

}  // namespace

std::span<const ExportFormat> export_formats() { return kExportFormats; }

const ExportFormat* find_export_format(std::string_view name) {
  const auto matching_format = std::ranges::find(kExportFormats, name, &ExportFormat::name);
  return matching_format == kExportFormats.end() ? nullptr : &*matching_format;
}

Error missing_energy_error(std::string_view level_name) {
  return {ErrorCode::not_found, fmt::format("the recording contains no energy by {}", level_name),
          fmt::format("run joulemap report --by {} for the reason", level_name)};
}

std::string command_text(const ReportResult& run) {
  return run.command.empty() ? "a recording" : join_parts(run.command, " ");
}

std::string scope_path_text(const std::vector<std::string>& path) { return join_parts(path, " "); }

}  // namespace joulemap::report
