// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/cell_functions.h"

#include <gtest/gtest.h>

#include "experiment/analysis/analyze.h"
#include "experiment/analysis/synthetic_experiment.h"
#include "experiment/run/row_json.h"

namespace joulemap::experiment {
namespace {

EnergyCause make_cause(EnergyCauseClass cause_class, double time_s, CauseBasis basis = CauseBasis::ledger) {
  EnergyCause cause{cause_class, basis};
  cause.times_s[cause_class] = time_s;
  return cause;
}

ExperimentData make_one_cell_data() {
  ExperimentData data = synthetic_experiment({"torch"}, {"net"}, 2, [](auto, auto, auto) { return 100.0; });
  data.rows[0].functions = {{"conv2d", "gpu0", 10, 2, 60, make_cause(EnergyCauseClass::compute, 2)},
                            {"item", "cpu", 4, 1, 5, make_cause(EnergyCauseClass::synchronization, 1)}};
  data.rows[1].functions = {{"conv2d", "gpu0", 20, 4, 80, make_cause(EnergyCauseClass::compute, 4)},
                            {"item", "cpu", {}, 3, {}, make_cause(EnergyCauseClass::launch, 3, CauseBasis::name)}};
  return data;
}

TEST(CellFunctions, FunctionsAreMeansOfTheRowsThatContainThemLargestFirst) {
  const ExperimentData data = make_one_cell_data();
  const Result<AnalysisResult> result = analyze(data, {});
  ASSERT_TRUE(result);
  const std::vector<CellFunctionMean>& functions = result->cells[0].functions;
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].name, "conv2d");
  EXPECT_EQ(functions[0].n, 2u);
  EXPECT_EQ(functions[0].count, 15);
  EXPECT_EQ(functions[0].time_s, 3);
  EXPECT_EQ(functions[0].energy_j, 70);
  EXPECT_NEAR(functions[0].share.value_or(0), 0.7, 1e-12);
  EXPECT_EQ(functions[1].count, 4) << "of the row that tells it";
  EXPECT_EQ(functions[1].energy_j, 5);
}

TEST(CellFunctions, FunctionMeansExcludeEnergiesOfEstimatedRows) {
  ExperimentData data = make_one_cell_data();
  data.rows[1].domains = {make_domain_energy("package-0", 100, Provenance::estimated)};
  const Result<AnalysisResult> result = analyze(data, {});
  ASSERT_TRUE(result);
  const CellFunctionMean& function = result->cells[0].functions[0];
  EXPECT_EQ(function.name, "conv2d");
  EXPECT_EQ(function.energy_j, 60);
  EXPECT_EQ(function.time_s, 3) << "of both rows";
}

TEST(CellFunctions, CauseOfAFunctionHasTheMostTimeAndMarksInferenceFromNames) {
  const ExperimentData data = make_one_cell_data();
  const Result<AnalysisResult> result = analyze(data, {});
  ASSERT_TRUE(result);
  const std::vector<CellFunctionMean>& functions = result->cells[0].functions;
  EXPECT_EQ(functions[0].cause->largest_class, EnergyCauseClass::compute);
  EXPECT_EQ(functions[0].cause->basis, CauseBasis::ledger);
  EXPECT_EQ(functions[1].cause->largest_class, EnergyCauseClass::launch);
  EXPECT_EQ(functions[1].cause->basis, CauseBasis::name);
  EXPECT_NEAR(functions[1].cause->times_s.sum(), functions[1].time_s, 1e-12);
}

TEST(CellFunctions, FunctionsRoundTripThroughRowJsonAndInferMissingCausesFromNames) {
  const ExperimentData data = make_one_cell_data();
  const std::string text = row_json(data.rows[0], {}, data);
  const Result<ExperimentRow> row = parse_row_json(text, "row.json", data);
  ASSERT_TRUE(row);
  ASSERT_EQ(row->functions.size(), 2u);
  EXPECT_EQ(row->functions[1].name, "item");
  EXPECT_EQ(row->functions[1].count, 4u);
  EXPECT_EQ(row->functions[1].cause->basis, CauseBasis::ledger);
  EXPECT_EQ(row->functions[1].cause->times_s[EnergyCauseClass::synchronization], 1);
  const Result<ExperimentRow> parsed_row = parse_row_json(
      R"({"schema": "joulemap.row/1", "functions": [{"name": "cudaMemcpy", "time_s": 2}]})", "row.json", data);
  ASSERT_TRUE(parsed_row);
  EXPECT_EQ(parsed_row->functions[0].cause->largest_class, EnergyCauseClass::memory);
  EXPECT_EQ(parsed_row->functions[0].cause->basis, CauseBasis::name);
}

TEST(RowFlags, RowFlagsAreDiagnosticsOfASingleRow) {
  ExperimentData data = synthetic_experiment({"torch"}, {"net"}, 8,
                                             [](auto, auto, auto block) { return 100.0 + static_cast<double>(block); });
  set_package_energy(data.rows[1], std::nullopt);
  data.rows[2].throttled_share = 0.5;
  data.rows[3].first.measured = MeasuredWatts(90);
  data.rows[3].baseline.measured = MeasuredWatts(10);
  data.rows[4].diagnostics.add({"gap", 1, "a gap", ""});
  data.rows[5].state = ExperimentRowState::failed;
  set_package_energy(data.rows[7], 5000);
  const Result<AnalysisResult> result = analyze(data, {});
  ASSERT_TRUE(result);
  using FlagCodes = std::vector<std::string>;
  EXPECT_EQ(result->row_flags[0], FlagCodes());
  EXPECT_EQ(result->row_flags[1], FlagCodes{"missing_energy"});
  EXPECT_EQ(result->row_flags[2], FlagCodes{"throttled"});
  EXPECT_EQ(result->row_flags[3], FlagCodes{"cool_down"});
  EXPECT_EQ(result->row_flags[4], FlagCodes{"gap"});
  EXPECT_EQ(result->row_flags[5], FlagCodes{"failed"});
  EXPECT_EQ(result->row_flags[7], FlagCodes{"outlier"});
}

}  // namespace
}  // namespace joulemap::experiment
