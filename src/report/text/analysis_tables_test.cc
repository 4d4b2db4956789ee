// SPDX-License-Identifier: Apache-2.0
#include "report/text/analysis_tables.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace joulemap::report
