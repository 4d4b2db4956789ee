// SPDX-License-Identifier: Apache-2.0
//
// run_table.csv: one line per row of an experiment, with its state. The first columns match the table of the tool
// experiment-runner:
// __run_id,__done,row,block,<factors>,attempts. Formatting and parsing are pure; experiment_folder.h accesses the
// files. The results in the row folders take precedence over this table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "experiment/plan/run_plan.h"
#include "model/experiment_data.h"

namespace joulemap::experiment {

struct RunTableRow {
  PlannedRow planned_row;
  ExperimentRowState state = ExperimentRowState::todo;
  std::uint32_t attempt_count = 0;
};

// "TODO", "RUNNING", "DONE" or "FAILED".
std::string_view row_state_text(ExperimentRowState state);

std::string run_table_csv(const std::vector<ExperimentFactor>& factors, const std::vector<RunTableRow>& rows);

// Returns rows in table order. On a mismatch with the factors, fails with the line number.
Result<std::vector<RunTableRow>> parse_run_table(std::string_view csv, const std::vector<ExperimentFactor>& factors);

}  // namespace joulemap::experiment
