// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/analyze.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "experiment/analysis/experiment_table.h"
#include "experiment/analysis/made_experiment.h"

namespace joulemap::experiment {
namespace {

// Values that differ by less than their place in the list, in no order.
double wobble(std::size_t repetition) { return static_cast<double>((repetition * 7 + 3) % 10) / 10; }

ExperimentData twice_as_much(bool is_blocked) {
  ExperimentData data = made_experiment({"a", "b"}, {"m", "n"}, 10, [](std::size_t a, std::size_t, std::size_t i) {
    return 100.0 * static_cast<double>(1 + a) + wobble(i);
  });
  data.blocked = is_blocked;
  return data;
}

AnalysisResult analyzed(const ExperimentData& data, const AnalysisOptions& options = {}) {
  Result<AnalysisResult> result = analyze(data, options);
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

std::vector<Comparison> of_measure(const AnalysisResult& result, std::string_view name) {
  std::vector<Comparison> found;
  for (const Comparison& one : result.comparisons) {
    if (result.measures[one.measure].name == name) found.push_back(one);
  }
  return found;
}

TEST(Analyze, BlockedRowsAreComparedBlockByBlock) {
  const AnalysisResult result = analyzed(twice_as_much(true));
  const std::vector<Comparison> energy = of_measure(result, "energy_j");
  ASSERT_EQ(energy.size(), 2);  // one for each model
  EXPECT_EQ(energy[0].test, "wilcoxon-signed-rank");
  EXPECT_DOUBLE_EQ(*energy[0].p, 2.0 / 1024);
  EXPECT_EQ(energy[0].a12, 0);
  EXPECT_GT(*energy[0].a12_high, 0.05);  // ten rows that are all less do not mean that all ever are
  EXPECT_LT(*energy[0].a12_high, 0.4);
  EXPECT_NEAR(*energy[0].difference, -100, 1e-9);
  EXPECT_NEAR(*energy[0].percent, -50, 0.5);
  EXPECT_TRUE(energy[0].is_different);
  EXPECT_NE(energy[0].verdict.find("a uses"), std::string::npos);
  EXPECT_NE(energy[0].verdict.find("less energy than b"), std::string::npos);
}

TEST(Analyze, RowsWithoutBlocksGetThePairedAndTheUnpairedTest) {
  const AnalysisResult result = analyzed(twice_as_much(false));
  const std::vector<Comparison> energy = of_measure(result, "energy_j");
  ASSERT_EQ(energy.size(), 4);
  EXPECT_EQ(energy[0].test, "wilcoxon-signed-rank");
  EXPECT_EQ(energy[1].test, "mann-whitney");
  EXPECT_NEAR(*energy[1].p, 2.0 / 184756, 1e-15);  // 20 over 10
}

TEST(Analyze, MoreThanTwoLevelsGetATestOfAllAndOneOfEachPair) {
  ExperimentData data = made_experiment({"a", "b", "c"}, {"m"}, 8, [](std::size_t a, std::size_t, std::size_t i) {
    return 100.0 + 5 * static_cast<double>(a) + wobble(i);
  });
  const std::vector<Comparison> blocked = of_measure(analyzed(data), "energy_j");
  ASSERT_EQ(blocked.size(), 4);
  EXPECT_EQ(blocked[0].test, "friedman");
  EXPECT_FALSE(blocked[0].a);
  data.blocked = false;
  const std::vector<Comparison> free = of_measure(analyzed(data), "energy_j");
  ASSERT_EQ(free.size(), 8);
  EXPECT_EQ(free[4].test, "kruskal-wallis");
}

TEST(Analyze, FactorsThatAreNotComparedOnlySayWhere) {
  const AnalysisResult result = analyzed(twice_as_much(true));
  for (const Comparison& one : result.comparisons) EXPECT_EQ(one.factor, 0);
  const AnalysisResult asked = analyzed(twice_as_much(true), {.factors = {"model"}});
  for (const Comparison& one : asked.comparisons) EXPECT_EQ(one.factor, 1);
  EXPECT_FALSE(analyze(twice_as_much(true), {.factors = {"nothing"}}));
  EXPECT_FALSE(analyze(twice_as_much(true), {.measures = {"nothing"}}));
}

TEST(Analyze, AFamilyIsTheTestsOfOneFactorAndOnePairing) {
  const AnalysisResult result = analyzed(twice_as_much(false), {.adjustment = statistics::Adjustment::bonferroni});
  for (const Comparison& one : result.comparisons) {
    EXPECT_EQ(one.family, 4);  // two models, energy and time
    EXPECT_DOUBLE_EQ(*one.p_adjusted, std::min(1.0, 4 * *one.p));
  }
}

TEST(Analyze, EqualCellsAreNotCalledDifferent) {
  const ExperimentData data = made_experiment(
      {"a", "b"}, {"m"}, 10, [](std::size_t a, std::size_t, std::size_t i) { return 100 + wobble(i + 5 * a); });
  for (const Comparison& one : analyzed(data).comparisons) {
    EXPECT_FALSE(one.is_different);
    EXPECT_NE(one.verdict.find("no difference shown"), std::string::npos) << one.verdict;
  }
}

TEST(Analyze, WhatTooFewRowsCannotShowIsCalledThat) {
  const ExperimentData data = made_experiment(
      {"a", "b"}, {"m", "n", "o"}, 6,
      [](std::size_t a, std::size_t, std::size_t i) { return 100.0 * static_cast<double>(1 + a) + wobble(i); });
  const AnalysisResult result = analyzed(data);
  const bool is_flagged = std::any_of(result.flags.begin(), result.flags.end(),
                                      [](const AnalysisFlag& flag) { return flag.code == "p_floor"; });
  EXPECT_TRUE(is_flagged);
  EXPECT_NE(result.comparisons[0].verdict.find("cannot be shown with 6 pairs"), std::string::npos);
  EXPECT_EQ(result.comparisons[0].minimum_n, 8);  // 2 / 2^8 x 6 is below 0.05
}

TEST(Analyze, ACellThatNoOtherBeatsIsOnTheFront) {
  ExperimentData data = twice_as_much(true);
  data.metrics = {{"accuracy", "", true}};
  for (ExperimentRow& row : data.rows) row.metrics = {row.levels[0] == 0 ? 0.7 : 0.6};
  const AnalysisResult result = analyzed(data);
  ASSERT_EQ(result.pareto.size(), 2);  // one for each model
  EXPECT_TRUE(result.pareto[0].points[0].is_on_front);
  EXPECT_EQ(result.pareto[0].points[0].probability, 1);
  EXPECT_FALSE(result.pareto[0].points[1].is_on_front);
  EXPECT_EQ(result.pareto[0].points[1].probability, 0);
  for (ExperimentRow& row : data.rows) row.metrics = {row.levels[0] == 0 ? 0.6 : 0.7};
  EXPECT_TRUE(analyzed(data).pareto[0].points[1].is_on_front);
}

TEST(Analyze, TheNumberOfThreadsChangesNothing) {
  ExperimentData data = twice_as_much(false);
  data.seed = 42;
  const AnalysisResult one = analyzed(data, {.threads = 1});
  const AnalysisResult four = analyzed(data, {.threads = 4});
  for (std::size_t cell = 0; cell < one.cells.size(); ++cell) {
    EXPECT_EQ(one.cells[cell].measures[0]->low, four.cells[cell].measures[0]->low);
    EXPECT_EQ(one.cells[cell].measures[0]->high, four.cells[cell].measures[0]->high);
  }
  for (std::size_t i = 0; i < one.comparisons.size(); ++i) {
    EXPECT_EQ(one.comparisons[i].p_adjusted, four.comparisons[i].p_adjusted);
    EXPECT_EQ(one.comparisons[i].low, four.comparisons[i].low);
  }
}

TEST(Analyze, TheFirstEpochIsApart) {
  ExperimentData data = made_experiment({"a"}, {"m"}, 2, [](auto, auto, auto) { return 10.0; });
  for (ExperimentRow& row : data.rows) row.epochs = {{0, 3, 6.0, {}}, {3, 1, 2.0, {}}, {4, 1, 4.0, {}}};
  const AnalysisResult result = analyzed(data);
  ASSERT_TRUE(result.cells[0].epochs);
  EXPECT_EQ(result.cells[0].epochs->first_j, 6);
  EXPECT_EQ(result.cells[0].epochs->later_j, 3);
  EXPECT_EQ(result.cells[0].epochs->later_s, 1);
}

TEST(Analyze, DomainsOfOneKindAreOneMeasure) {
  EXPECT_EQ(kind_of_domain("package-1"), "package");
  EXPECT_EQ(kind_of_domain("gpu0"), "gpu");
  EXPECT_EQ(kind_of_domain("psys"), "psys");
  ExperimentData data = made_experiment({"a"}, {"m"}, 2, [](auto, auto, auto) { return 30.0; });
  for (ExperimentRow& row : data.rows) {
    for (const char* name : {"package-0", "package-1", "gpu0"}) {
      DomainEnergy domain;
      domain.name = name;
      domain.joules = 10;
      domain.counted = true;
      row.domains.push_back(domain);
    }
  }
  const AnalysisResult result = analyzed(data);
  ASSERT_EQ(result.measures.size(), 4);  // energy, package, gpu, time
  EXPECT_EQ(result.measures[1].name, "package");
  EXPECT_EQ(result.cells[0].measures[1]->mean, 20);
}

TEST(Analyze, AnExperimentWithoutRowsIsAnError) {
  ExperimentData data = twice_as_much(true);
  for (ExperimentRow& row : data.rows) row.state = RowState::todo;
  EXPECT_FALSE(analyze(data, {}));
}

}  // namespace
}  // namespace joulemap::experiment
