// SPDX-License-Identifier: Apache-2.0
#include "report/text/analysis_tables.h"

#include <gtest/gtest.h>

#include "report/text/analysis_summary.h"

namespace joulemap::report {
namespace {

TEST(MainEffectsTable, CountsTheLevelsThatTheTestCompared) {
  AnalysisResult result;
  result.factors = {{"model", {"a", "b", "c", "d"}, true}};
  result.measures = {{"energy_j", MeasureKind::energy, "J"}};
  MainEffect effect;
  effect.test = "mixed-model-f";
  effect.levels = 3;  // level d has no values
  result.main_effects = {effect};
  const TextTable table = main_effects_table(result);
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0][2], "3 levels");
}

TEST(FullPrecisionCellsTable, FlagsOfAMeasureAreOnlyInItsRow) {
  AnalysisResult result;
  result.factors = {{"model", {"a"}, true}};
  result.measures = {{"energy_j", MeasureKind::energy, "J"}, {"time_s", MeasureKind::time, "s"}};
  AnalysisCell& cell = result.cells.emplace_back();
  cell.levels = {0};
  cell.measures.resize(2);
  for (std::optional<MeasureSummary>& summary : cell.measures) summary.emplace().values = {1};
  cell.flags = {{"throttled", "", "", std::nullopt}, {"drift", "", "", 1}};
  const TextTable table = full_precision_cells_table(result);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].back(), "throttled");
  EXPECT_EQ(table.rows[1].back(), "throttled, drift");
  EXPECT_EQ(table.rows[0][6], "") << "one value has no interval";
}

TEST(AnalysisSummary, PairsOfLevelsShowTheMedianOfAnEvenNumberOfDifferences) {
  AnalysisResult result;
  result.factors = {{"model", {"a", "b"}, true}};
  result.measures = {{"energy_j", MeasureKind::energy, "J"}};
  result.is_blocked = true;
  for (const double percent : {-10.0, 10.0, 20.0, 50.0}) {
    Comparison& comparison = result.comparisons.emplace_back();
    comparison.a = 0;
    comparison.b = 1;
    comparison.percent = percent;
  }
  EXPECT_NE(analysis_summary(result, {}).find("+15 %"), std::string::npos) << analysis_summary(result, {});
}

}  // namespace
}  // namespace joulemap::report
