// SPDX-License-Identifier: Apache-2.0
//
// run_table.csv: one line for each row of an experiment, with where it stands. The columns begin as experiment-runner's do,
// so that its users find their way: __run_id,__done,row,block,<factors>,attempts. Writing and reading are pure here;
// experiment_folder.h has the files. What lies in the rows' folders counts more than this table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "experiment/plan/run_plan.h"
#include "model/experiment_data.h"

namespace joulemap::experiment {

struct TableRow {
  PlannedRow plan;
  RowState state = RowState::todo;
  std::uint32_t attempts = 0;
};

// "TODO", "RUNNING", "DONE", "FAILED".
std::string_view table_word(RowState state);

std::string run_table_csv(const std::vector<ExperimentFactor>& factors, const std::vector<TableRow>& rows);

// Rows in the order of the table. Fails with the line where it does not fit the factors.
Result<std::vector<TableRow>> parse_run_table(std::string_view csv, const std::vector<ExperimentFactor>& factors);

}  // namespace joulemap::experiment
