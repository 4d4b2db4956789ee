// SPDX-License-Identifier: Apache-2.0
//
// Writes folders for rows that another program ran.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/file_descriptor.h"
#include "base/private_files.h"
#include "base/small_file.h"
#include "base/write_fully.h"
#include "experiment/run/experiment_folder.h"
#include "formats/document.h"

namespace joulemap::experiment {
namespace {

std::string toml_string_list(const std::vector<std::string>& texts) {
  std::string list_text;
  for (const std::string& text : texts)
    list_text += (list_text.empty() ? "" : ", ") + formats::toml_string_literal(text);
  return "[" + list_text + "]";
}

std::vector<RunTableRow> make_imported_run_table(const ExperimentData& data) {
  std::vector<RunTableRow> table;
  std::map<std::vector<std::size_t>, std::size_t> cells;
  for (const ExperimentRow& row : data.rows) {
    const std::size_t cell = cells.try_emplace(row.levels, cells.size()).first->second;
    table.push_back({{cell, row.block, row.levels}, row.state, std::max<std::uint32_t>(row.attempts, 1)});
  }
  return table;
}

// Writes without fsync: an import can be repeated.
Status write_file(const std::string& path, std::string_view content) {
  const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPrivateFileMode));
  if (!fd.is_open()) return system_error("open", path, errno);
  return write_fully(fd.get(), content, path);
}

}  // namespace

std::string imported_experiment_toml(const ExperimentData& data) {
  std::size_t repetitions = 1;
  for (const ExperimentRow& row : data.rows) repetitions = std::max(repetitions, row.block + 1);
  std::string toml = fmt::format("# These rows were imported: there is no command.\nname = {}\n",
                                 formats::toml_string_literal(data.name));
  toml += fmt::format("repetitions = {}\norder = \"{}\"\nseed = {}\nalpha = {}\n", repetitions,
                      data.is_blocked ? "blocked" : "sequential", data.seed, data.alpha);
  std::vector<std::string> compared_factor_names;
  for (const ExperimentFactor& factor : data.factors) {
    if (factor.is_compared) compared_factor_names.push_back(factor.name);
  }
  if (compared_factor_names.size() < data.factors.size())
    toml += fmt::format("compare = {}\n", toml_string_list(compared_factor_names));
  toml += "\n[factors]\n";
  for (const ExperimentFactor& factor : data.factors) {
    toml += fmt::format("{} = {}\n", formats::toml_string_literal(factor.name), toml_string_list(factor.levels));
  }
  for (const ExperimentMetric& metric : data.metrics) {
    toml += fmt::format("\n[metrics.{}]\nmore_is_better = {}\n", formats::toml_string_literal(metric.name),
                        metric.more_is_better);
    if (!metric.is_compared) toml += "compared = false\n";
    if (!metric.unit.empty()) toml += fmt::format("unit = {}\n", formats::toml_string_literal(metric.unit));
  }
  for (const Diagnostic& note : data.diagnostics.list()) {
    toml += fmt::format("\n[[note]]\ncode = {}\ncount = {}\nmessage = {}\n", formats::toml_string_literal(note.code),
                        note.count, formats::toml_string_literal(note.message));
    if (!note.remedy.empty()) toml += fmt::format("remedy = {}\n", formats::toml_string_literal(note.remedy));
  }
  return toml;
}

Status write_experiment(const std::string& path, const ExperimentData& data) {
  const std::string toml = imported_experiment_toml(data);
  if (const Result<ExperimentSpec> spec = parse_spec(toml, "experiment.toml"); !spec) return spec.error();
  if (::mkdir(path.c_str(), kPrivateFolderMode) != 0) {
    Error error = system_error("create the folder", path, errno);
    error.remedy = "choose another name: import does not overwrite folders";
    return error;
  }
  for (const ExperimentRow& row : data.rows) {
    const std::string attempt = fmt::format("{}/rows/{:05}/attempt-{}", path, row.number, std::max(row.attempts, 1u));
    if (Status folder_status = make_private_folders(attempt); !folder_status) return folder_status;
    if (Status write_status = write_file(attempt + "/row.json", row_json(row, {}, data)); !write_status)
      return write_status;
  }
  if (Status write_status = write_file(path + "/experiment.toml", toml); !write_status) return write_status;
  return write_file(path + "/run_table.csv", run_table_csv(data.factors, make_imported_run_table(data)));
}

}  // namespace joulemap::experiment
