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
  EnergyCause computing{EnergyCauseClass::compute, CauseBasis::ledger};
  computing.times_s[EnergyCauseClass::compute] = 12;
  AnalysisCell recorded;
  recorded.levels = {0};
  recorded.functions = {{"torch.nn.functional.conv2d", "gpu0", 10, 53550, 12, 910.5, 0.25, computing},
                        {"torch.nn.functional.conv2d", "cpu", 10, 18179, 2, std::nullopt, std::nullopt, launch_cause()},
                        {"unheard", "cpu", 3, std::nullopt, 0.25, 1.5, 0.0005, std::nullopt}};
  AnalysisCell named;
  named.levels = {1};
  named.functions = {
      {"cudaMemcpyAsync", "cpu", 1, 3, 0.5, 4, 0.1, scopes::make_cause_from_name("cudaMemcpyAsync", 0.5)}};
  result.cells = {recorded, named};
  result.row_flags = {{"throttled", "outlier"}, {}};
  return result;
}

ExperimentData make_two_row_data() {
  ExperimentData data;
  data.factors = make_two_cell_result().factors;
  data.metrics = {{"accuracy", "", true}};
  ExperimentRow done;
  done.levels = {0};
  done.state = ExperimentRowState::done;
  done.attempts = 2;
  done.exit_code = 0;
  done.node = "here";
  done.start_unix_ns = 1'700'000'000'123'456'789;
  done.elapsed_s = 1.5;
  done.domains.resize(2);
  done.domains[0].name = "package-0";
  done.domains[0].joules = 30.25;
  done.domains[0].provenance = Provenance::measured;
  done.domains[0].is_counted = true;
  done.domains[1].name = "gpu0";
  done.baseline.measured = MeasuredWatts(10);
  done.first.measured = MeasuredWatts(11);
  done.cpu_steal_share = 0;
  done.throttled_share = 0.5;
  done.metrics = {0.75};
  done.epochs.resize(3);
  ExperimentRow open;
  open.number = 1;
  open.block = 1;
  open.levels = {1};
  data.rows = {done, open};
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
