// SPDX-License-Identifier: Apache-2.0
#include "report/text/experiment_import.h"

#include <fmt/format.h>

#include <set>

#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"
#include "report/text/diagnostics_text.h"

namespace joulemap::report {
namespace {

struct Counts {
  std::size_t cells = 0;
  std::size_t failed = 0;
  std::size_t with_energy = 0;
  std::size_t epochs = 0;
  Diagnostics diagnostics;
};

Counts counts_of(const ExperimentData& data) {
  Counts counts;
  counts.diagnostics = data.diagnostics;
  std::set<std::vector<std::size_t>> cells;
  for (const ExperimentRow& row : data.rows) {
    cells.insert(row.levels);
    counts.failed += row.state == RowState::failed ? 1 : 0;
    counts.with_energy += energy_if_complete(total_energy(row.domains)) ? 1 : 0;
    counts.epochs += row.epochs.size();
    counts.diagnostics.add_all(row.diagnostics);
  }
  counts.cells = cells.size();
  return counts;
}

}  // namespace

std::string experiment_import_text(const ExperimentData& data, const ExperimentImportSummary& imported) {
  const Counts counts = counts_of(data);
  std::string out = fmt::format("joulemap: {} rows in {} cells, {} with energy, {} epochs\n", data.rows.size(),
                                counts.cells, counts.with_energy, counts.epochs);
  out += fmt::format("joulemap: to analyze the rows, run: joulemap experiment analyze {}\n", imported.folder);
  return out + diagnostics_text(counts.diagnostics);
}

std::string experiment_import_json(const ExperimentData& data, const ExperimentImportSummary& imported) {
  const Counts counts = counts_of(data);
  formats::JsonWriter json;
  json.begin_object().member("schema", "joulemap.import/1").member("format", imported.format);
  json.key("inputs").begin_array();
  for (const std::string& input : imported.inputs) json.value(input);
  json.end_array()
      .member("experiment", imported.folder)
      .member("rows", std::uint64_t{data.rows.size()})
      .member("rows_failed", std::uint64_t{counts.failed})
      .member("cells", std::uint64_t{counts.cells})
      .member("epochs", std::uint64_t{counts.epochs});
  write_diagnostics(json, counts.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
