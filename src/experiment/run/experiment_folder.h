// SPDX-License-Identifier: Apache-2.0
//
// An experiment on disk (docs/experiment.md has the layout). The plan is written once; the table is replaced by a rename,
// under a lock of its own, so that launchers on several machines may run rows at once; what a row gave is a file in a folder
// of its attempt, and nothing is ever overwritten. Where table and rows differ, rows are right: a runner that was killed
// leaves a folder from which everything can go on.
//
//   Result<ExperimentFolder> folder = ExperimentFolder::create("exp", toml_text, directory_of_the_plan);
//   Result<ExperimentFolder> folder = ExperimentFolder::open("exp");
//   ExperimentData data = folder->read();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "experiment/plan/experiment_spec.h"
#include "experiment/run/row_json.h"
#include "experiment/run/run_table.h"
#include "model/experiment_data.h"

namespace joulemap::experiment {

struct Attempt {
  std::uint32_t number = 0;  // from 1
  std::string path;
};

class ExperimentFolder {
 public:
  // Fails where there is something of that name already. `directory` is where the plan lay: commands run from there.
  static Result<ExperimentFolder> create(const std::string& given_path, std::string_view toml,
                                         const std::string& directory);
  static Result<ExperimentFolder> open(const std::string& given_path);

  const std::string& path() const { return path_; }  // absolute
  const ExperimentSpec& spec() const { return spec_; }
  const std::string& directory() const { return directory_; }  // where commands run

  // Rows as the plan has them, states and attempts as they lie on the disk.
  const std::vector<TableRow>& table() const { return table_; }
  // Looks at the disk again: others may have run rows meanwhile.
  Status refresh();
  // Everything, for analyses. What is damaged is a diagnostic.
  ExperimentData read() const;
  // Without rows: names of factors and metrics.
  ExperimentData header() const;

  // "rows/00003" under the folder; `kind` is "rows", "warm-up" or "pilot".
  std::string row_path(std::string_view kind, std::size_t number) const;
  // A new folder for the next attempt; two launchers never get the same.
  Result<Attempt> begin_attempt(std::string_view kind, std::size_t number) const;
  // The same for a row of the table, marked as running there. Nothing where it is done, or where somebody is at it;
  // `from_elsewhere` takes it from a machine of which nobody knows.
  Result<std::optional<Attempt>> claim(std::size_t row, bool from_elsewhere = false);
  // What the attempt gave, complete on the disk or not there at all.
  Status finish_attempt(const Attempt& attempt, const ExperimentRow& row, const RowSetting& setting) const;
  // The table with this row in a new state; other rows as the disk has them.
  Status set_state(std::size_t row, RowState state, std::uint32_t attempts);

  // The last attempt with a row.json under that row's folder, if any.
  std::optional<ExperimentRow> last_result(std::string_view kind, std::size_t number, Diagnostics& diagnostics) const;

 private:
  ExperimentFolder(std::string path, ExperimentSpec spec, std::string directory)
      : path_(std::move(path)), spec_(std::move(spec)), directory_(std::move(directory)) {}
  Status read_table();
  Status write_table() const;

  std::string path_;
  ExperimentSpec spec_;
  std::string directory_;
  std::vector<TableRow> table_;
};

// The folder's data; what `analyze` begins with.
Result<ExperimentData> read_experiment(const std::string& path);

// The files and folders of an experiment that it is read from: what no output may replace.
std::vector<std::string> experiment_files(const std::string& path);

// A folder for rows that somebody else has run: a plan that describes them, the table, and a row.json for each.
Status write_experiment(const std::string& path, const ExperimentData& data);

}  // namespace joulemap::experiment
