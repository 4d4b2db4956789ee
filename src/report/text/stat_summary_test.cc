// SPDX-License-Identifier: Apache-2.0
#include "report/text/stat_summary.h"

#include <gtest/gtest.h>

namespace joulemap::report {
namespace {

StatRun make_stat_run(std::optional<double> joules, Provenance provenance = Provenance::measured) {
  StatRun run;
  DomainEnergy domain;
  domain.name = "package-0";
  domain.joules = joules;
  if (joules) {
    domain.uncertainty_j = 2;
    domain.provenance = provenance;
  }
  run.domains = {domain};
  return run;
}

TEST(StatSummary, ASingleRunHasItsOwnUncertainty) {
  const auto summary = summarize_runs(std::vector<StatRun>{make_stat_run(100)}, 0.95);
  ASSERT_EQ(summary.size(), 1u);
  EXPECT_DOUBLE_EQ(summary[0].low_j.value(), 98);
  EXPECT_DOUBLE_EQ(summary[0].high_j.value(), 102);
}

TEST(StatSummary, TheIntervalOfSeveralRunsComesFromTheirSpread) {
  const auto summary =
      summarize_runs(std::vector<StatRun>{make_stat_run(99), make_stat_run(100), make_stat_run(101)}, 0.95);
  EXPECT_DOUBLE_EQ(summary[0].mean_j.value(), 100);
  EXPECT_NEAR(summary[0].high_j.value() - 100, 2.4841, 1e-4);  // t(2, 0.975) / sqrt(3)
}

TEST(StatSummary, RepetitionDoesNotReduceTheErrorOfAnEstimate) {
  const std::vector<StatRun> runs(5, make_stat_run(100, Provenance::estimated));
  const auto summary = summarize_runs(runs, 0.95);
  EXPECT_DOUBLE_EQ(summary[0].high_j.value(), 102);  // the runs are equal, but the error of the model is 2 J
}

TEST(StatSummary, NeverAveragesEstimatesWithMeasurements) {
  const auto summary = summarize_runs(
      std::vector<StatRun>{make_stat_run(100), make_stat_run(7, Provenance::estimated), make_stat_run(102)}, 0.95);
  EXPECT_DOUBLE_EQ(summary[0].mean_j.value(), 101);
  EXPECT_EQ(summary[0].runs_with_value, 2u);
}

TEST(StatSummary, ExcludesAndReportsRunsWithoutAValue) {
  const auto summary = summarize_runs(std::vector<StatRun>{make_stat_run(100), make_stat_run(std::nullopt)}, 0.95);
  EXPECT_EQ(summary[0].runs_with_value, 1u);
  EXPECT_DOUBLE_EQ(summary[0].mean_j.value(), 100);
  const auto summary_without_values = summarize_runs(std::vector<StatRun>{make_stat_run(std::nullopt)}, 0.95);
  EXPECT_FALSE(summary_without_values[0].mean_j);
}

}  // namespace
}  // namespace joulemap::report
