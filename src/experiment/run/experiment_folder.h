// SPDX-License-Identifier: Apache-2.0
//
// An experiment on disk: experiment.toml and plan.json (the plan, written once), run_table.csv (state and results of all
// rows), rows/00017/attempt-1 (one folder per attempt: result, output and files of the program), warm-up, lock files.
// The table is replaced atomically under its own lock, so that runners on several machines can run rows concurrently.
// Each attempt writes its result into its own folder; nothing is overwritten. Where the table and the row folders
// disagree, the row folders are authoritative. A folder left by a killed runner can therefore be resumed.
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
  std::uint32_t attempt_number = 0;  // 1 for the first attempt of a row
  std::string path;
};

class ExperimentFolder {
 public:
  // Fails if the path exists. `working_directory` is the folder of the plan: commands run there.
  static Result<ExperimentFolder> create(const std::string& folder_path, std::string_view toml,
                                         const std::string& directory);
  static Result<ExperimentFolder> open(const std::string& folder_path);

  const std::string& path() const { return path_; }  // absolute
  const ExperimentSpec& spec() const { return spec_; }
  const std::string& working_directory() const { return working_directory_; }  // working directory of commands

  // Rows in plan order; states and attempts as last read from disk.
  const std::vector<RunTableRow>& run_table() const { return run_table_; }
  // Reads the table and the row folders again: other runners may have run rows.
  Status reload_run_table();
  // Reads all rows for the analysis. Damaged rows become diagnostics.
  ExperimentData read() const;
  // Names of factors and metrics, without rows.
  ExperimentData make_data_without_rows() const;

  // "rows/00003" under the folder; `kind` is "rows", "warm-up" or "pilot".
  std::string row_path(std::string_view kind, std::size_t number) const;
  // Creates the folder of the row's next attempt; no two runners get the same one.
  Result<Attempt> begin_attempt(std::string_view kind, std::size_t number) const;
  // Like begin_attempt for a row of the table, which it marks as running. None if the row is done or another runner
  // owns it; `include_unknown_owners` also takes rows of machines whose state is unknown.
  Result<std::optional<Attempt>> claim_row(std::size_t row, bool include_unknown_owners = false);
  // Writes the result of the attempt atomically.
  Status finish_attempt(const Attempt& attempt, const ExperimentRow& row, const AttemptConditions& conditions) const;
  // Writes this row's new state into the table; other rows keep the state on disk.
  Status set_row_state(std::size_t row, ExperimentRowState state, std::uint32_t attempts);

  // Result of the last attempt with a readable row.json; none if there is none.
  std::optional<ExperimentRow> read_last_result(std::string_view kind, std::size_t number,
                                                Diagnostics& diagnostics) const;

 private:
  ExperimentFolder(std::string path, ExperimentSpec spec, std::string directory)
      : path_(std::move(path)), spec_(std::move(spec)), working_directory_(std::move(directory)) {}
  Status read_table();
  Status write_table() const;

  std::string path_;
  ExperimentSpec spec_;
  std::string working_directory_;
  std::vector<RunTableRow> run_table_;
};

// Reads the data of a folder, the input of `analyze`.
Result<ExperimentData> read_experiment(const std::string& path);

// Files and folders that the experiment is read from; no output may replace them.
std::vector<std::string> list_experiment_files(const std::string& path);

// Writes a folder for rows that another program ran: a plan that describes them, the table, and a row.json each.
Status write_experiment(const std::string& path, const ExperimentData& data);

}  // namespace joulemap::experiment
