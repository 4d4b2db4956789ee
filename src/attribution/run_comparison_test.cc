// SPDX-License-Identifier: Apache-2.0
#include "attribution/run_comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/ledger_example.h"

namespace joulemap::attribution {
namespace {

// Steps of 10 J that differ by `spread_j` from one to the next.
ReportResult steps_of(double factor, double spread_j = 0.1) {
  ReportResult result;
  result.by = "step";
  for (int i = 0; i < 400; ++i) {
    ReportRow row;
    row.name = std::to_string(i);
    row.energy_j = factor * (10 + (i % 7 - 3) * spread_j + (i < 40 ? 20 : 0));
    result.rows.push_back(row);
  }
  return result;
}

RunReports run(double factor) { return {example_training_times(factor), steps_of(factor)}; }

const DifferenceEntry& entry(const RunDifference& difference, const std::string& device, const std::string& name) {
  for (const DifferenceEntry& one : difference.entries) {
    if (one.device == device && one.path.size() > 1 && one.path[1] + " " + one.name == name) return one;
  }
  static const DifferenceEntry none;
  return none;
}

TEST(RunComparison, ARunAgainstItselfIsAllNoise) {
  const Result<RunDifference> found = compare_runs(run(1), run(1), {"", 0.0});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->per, "sample");
  EXPECT_EQ(found->total.verdict, Verdict::within_noise);
  EXPECT_FALSE(found->failed);
  for (const DifferenceEntry& one : found->entries) EXPECT_EQ(one.verdict, Verdict::within_noise) << one.name;
}

TEST(RunComparison, EnergiesArePerUnitAndTheIntervalHoldsTheDifference) {
  const Result<RunDifference> found = compare_runs(run(1), run(1.5), {"step", {}});
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->total.a->energy_j, 4500.0 / 400);
  EXPECT_DOUBLE_EQ(found->total.b->energy_j, 6500.0 / 400);
  EXPECT_EQ(found->total.verdict, Verdict::grew);
  EXPECT_LT(*found->total.low_j, 5.0);
  EXPECT_GT(*found->total.high_j, 5.0);
  const DifferenceEntry& grown = entry(*found, "gpu0", "backward layer1.0.conv1");
  EXPECT_NEAR(*grown.difference_j, 700.0 / 400, 1e-12);
  EXPECT_EQ(grown.verdict, Verdict::grew);
  const Result<RunDifference> other = compare_runs(run(1.5), run(1), {"step", {}});
  EXPECT_EQ(other->total.verdict, Verdict::shrank);
}

TEST(RunComparison, FailsOnlyWhenTheTotalGrewByMoreThanAllowedAndBeyondTheNoise) {
  EXPECT_TRUE(compare_runs(run(1), run(1.2), {"", 0.05})->failed);
  EXPECT_FALSE(compare_runs(run(1), run(1.04), {"", 0.05})->failed) << "grew, but by less";
  EXPECT_FALSE(compare_runs(run(1.2), run(1), {"", 0.05})->failed) << "shrank";
  EXPECT_FALSE(compare_runs(run(1), run(1.2), {"", {}})->failed) << "nobody asked";
  RunReports unsure = run(1.2);
  unsure.rows.domains[0].uncertainty_j = 2000;
  EXPECT_FALSE(compare_runs(run(1), unsure, {"", 0.05})->failed) << "grew within the noise";
}

TEST(RunComparison, StepsThatScatterMakeNoise) {
  RunReports calm = run(1.02);
  RunReports wild = run(1.02);
  wild.steps = steps_of(1.02, 0);
  for (std::size_t i = 0; i < wild.steps.rows.size(); ++i)
    *wild.steps.rows[i].energy_j *= 1 + 0.3 * std::sin(double(i) / 20);
  EXPECT_EQ(compare_runs(run(1), calm, {})->total.verdict, Verdict::grew);
  EXPECT_EQ(compare_runs(run(1), wild, {})->total.verdict, Verdict::within_noise);
}

TEST(RunComparison, WhatOnlyOneHasIsNewOrGone) {
  RunReports b = run(1);
  b.rows.rows[0].path.back() = b.rows.rows[0].name = "layer1.0.conv9";
  const Result<RunDifference> found = compare_runs(run(1), b, {});
  EXPECT_EQ(entry(*found, "gpu0", "backward layer1.0.conv9").verdict, Verdict::appeared);
  EXPECT_EQ(entry(*found, "gpu0", "backward layer1.0.conv1").verdict, Verdict::gone);
}

TEST(RunComparison, AMeasurementDoesNotCompareToAnEstimate) {
  RunReports b = run(1);
  b.rows.domains.erase(b.rows.domains.begin());
  b.rows.totals = total_energy(b.rows.domains);
  EXPECT_FALSE(compare_runs(run(1), b, {}));
}

TEST(RunComparison, OnlyDomainsOfBothAreInTheTotal) {
  RunReports b = run(1);
  b.rows.domains[1].provenance = Provenance::measured;
  b.rows.totals = total_energy(b.rows.domains);
  const Result<RunDifference> found = compare_runs(run(1), b, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->domains, std::vector<std::string>{"gpu0"});
  EXPECT_EQ(found->total.verdict, Verdict::within_noise);
  EXPECT_TRUE(found->diagnostics.contains("domains_differ"));
}

TEST(RunComparison, RefusesAUnitThatOneDoesNotTell) {
  RunReports b = run(1);
  b.rows.epochs = 0;
  EXPECT_FALSE(compare_runs(run(1), b, {"epoch", {}}));
  EXPECT_TRUE(compare_runs(run(1), b, {"run", {}}));
}

}  // namespace
}  // namespace joulemap::attribution
