// SPDX-License-Identifier: Apache-2.0
//
// Compares the tables of an experiment's functions and rows with the texts in tests/golden.
#include <gtest/gtest.h>

#include "report/export/experiment_rows.h"
#include "report/text/function_tables.h"
#include "scopes/cause_names.h"
#include "support/golden.h"

namespace joulemap::report {
namespace {

EnergyCause launch_cause() {
  EnergyCause cause{EnergyCauseClass::launch, CauseBasis::ledger};
  cause.times_s[EnergyCauseClass::launch] = 1.5;
  cause.times_s[EnergyCauseClass::synchronization] = 0.5;
  return cause;
}

AnalysisResult make_two_cell_result() {
  AnalysisResult result;
  result.factors = {{"framework", {"torch", "a, b"}, true}};
  EnergyCause compute_cause{EnergyCauseClass::compute, CauseBasis::ledger};
  compute_cause.times_s[EnergyCauseClass::compute] = 12;
  AnalysisCell ledger_evidence_cell;
  ledger_evidence_cell.levels = {0};
  ledger_evidence_cell.functions = {
      {"torch.nn.functional.conv2d", "gpu0", 10, 53550, 12, 910.5, 0.25, compute_cause},
      {"torch.nn.functional.conv2d", "cpu", 10, 18179, 2, std::nullopt, std::nullopt, launch_cause()},
      {"unheard", "cpu", 3, std::nullopt, 0.25, 1.5, 0.0005, std::nullopt}};
  AnalysisCell name_evidence_cell;
  name_evidence_cell.levels = {1};
  name_evidence_cell.functions = {
      {"cudaMemcpyAsync", "cpu", 1, 3, 0.5, 4, 0.1, scopes::make_cause_from_name("cudaMemcpyAsync", 0.5)}};
  result.cells = {ledger_evidence_cell, name_evidence_cell};
  result.row_flags = {{"throttled", "outlier"}, {}};
  return result;
}

ExperimentData make_two_row_data() {
  ExperimentData data;
  data.factors = make_two_cell_result().factors;
  data.metrics = {{"accuracy", "", true}};
  ExperimentRow finished_row;
  finished_row.levels = {0};
  finished_row.state = ExperimentRowState::done;
  finished_row.attempts = 2;
  finished_row.exit_code = 0;
  finished_row.node = "here";
  finished_row.start_unix_ns = 1'700'000'000'123'456'789;
  finished_row.elapsed_s = 1.5;
  finished_row.domains.resize(2);
  finished_row.domains[0].name = "package-0";
  finished_row.domains[0].joules = 30.25;
  finished_row.domains[0].provenance = Provenance::measured;
  finished_row.domains[0].is_counted = true;
  finished_row.domains[1].name = "gpu0";
  finished_row.baseline.measured = MeasuredWatts(10);
  finished_row.first.measured = MeasuredWatts(11);
  finished_row.cpu_steal_share = 0;
  finished_row.throttled_share = 0.5;
  finished_row.metrics = {0.75};
  finished_row.epochs.resize(3);
  ExperimentRow pending_row;
  pending_row.number = 1;
  pending_row.block = 1;
  pending_row.levels = {1};
  data.rows = {finished_row, pending_row};
  return data;
}

TEST(FunctionReport, PrintsCausesOfFunctionsAndTheirEvidence) {
  expect_golden("functions.md", markdown_table(functions_table(make_two_cell_result())));
}

TEST(FunctionReport, CsvHasAllDigits) {
  expect_golden("functions.csv", csv_table(full_precision_functions_table(make_two_cell_result())));
}

TEST(FunctionReport, PrintsSingleRowsWithFlagsAndLeavesUnknownValuesEmpty) {
  expect_golden("experiment_rows.csv",
                csv_table(full_precision_rows_table(make_two_row_data(), make_two_cell_result())));
}

}  // namespace
}  // namespace joulemap::report
