// SPDX-License-Identifier: Apache-2.0
#include "report/text/experiment_import.h"

#include <fmt/format.h>

#include <set>

#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"
#include "report/text/diagnostics_text.h"

namespace joulemap::report {
namespace {

struct ImportCounts {
  std::size_t cell_count = 0;
  std::size_t failed_row_count = 0;
  std::size_t rows_with_energy = 0;
  std::size_t epoch_count = 0;
  Diagnostics diagnostics;
};

ImportCounts count_imported_rows(const ExperimentData& data) {
  ImportCounts counts;
  counts.diagnostics = data.diagnostics;
  std::set<std::vector<std::size_t>> cells;
  for (const ExperimentRow& row : data.rows) {
    cells.insert(row.levels);
    counts.failed_row_count += row.state == ExperimentRowState::failed ? 1 : 0;
    counts.rows_with_energy += energy_if_complete(total_energy(row.domains)) ? 1 : 0;
    counts.epoch_count += row.epochs.size();
    counts.diagnostics.add_all(row.diagnostics);
  }
  counts.cell_count = cells.size();
  return counts;
}

}  // namespace

std::string experiment_import_text(const ExperimentData& data, const ExperimentImportSummary& import_summary) {
  const ImportCounts counts = count_imported_rows(data);
  std::string out = fmt::format("joulemap: {} rows in {} cells, {} with energy, {} epochs\n", data.rows.size(),
                                counts.cell_count, counts.rows_with_energy, counts.epoch_count);
  out += fmt::format("joulemap: to analyze the rows, run: joulemap experiment analyze {}\n",
                     import_summary.experiment_folder);
  return out + diagnostics_text(counts.diagnostics);
}

std::string experiment_import_json(const ExperimentData& data, const ExperimentImportSummary& import_summary) {
  const ImportCounts counts = count_imported_rows(data);
  formats::JsonWriter json;
  json.begin_object().member("schema", "joulemap.import/1").member("format", import_summary.format_name);
  json.key("inputs").begin_array();
  for (const std::string& input : import_summary.input_paths) json.value(input);
  json.end_array()
      .member("experiment", import_summary.experiment_folder)
      .member("rows", std::uint64_t{data.rows.size()})
      .member("rows_failed", std::uint64_t{counts.failed_row_count})
      .member("cells", std::uint64_t{counts.cell_count})
      .member("epochs", std::uint64_t{counts.epoch_count});
  write_diagnostics(json, counts.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
