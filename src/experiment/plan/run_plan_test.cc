// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/run_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "experiment/plan/plan_summary.h"

namespace joulemap::experiment {
namespace {

ExperimentSpec random_spec(std::mt19937_64& random) {
  ExperimentSpec spec;
  const std::size_t factors = 1 + random() % 3;
  for (std::size_t i = 0; i < factors; ++i) {
    ExperimentFactor factor{"f" + std::to_string(i), {}};
    for (std::size_t level = 0; level < 1 + random() % 4; ++level) factor.levels.push_back(std::to_string(level));
    factor.levels.resize(std::max<std::size_t>(factor.levels.size(), 1), "0");
    spec.factors.push_back(std::move(factor));
  }
  spec.repetitions = 1 + random() % 6;
  spec.seed = random();
  return spec;
}

TEST(RunPlan, EveryBlockContainsEveryCellOnce) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    ExperimentSpec spec = random_spec(random);
    const Result<std::vector<PlannedRow>> rows = plan_rows(spec);
    ASSERT_TRUE(rows);
    const std::size_t cells = list_planned_cells(spec).size();
    ASSERT_EQ(rows->size(), cells * spec.repetitions);
    for (std::size_t number = 0; number < rows->size(); ++number)
      ASSERT_EQ(rows->at(number).block_number, number / cells);
    std::set<std::pair<std::size_t, std::vector<std::size_t>>> distinct_rows;
    for (const PlannedRow& row : *rows) distinct_rows.insert({row.block_number, row.levels});
    ASSERT_EQ(distinct_rows.size(), rows->size());
  }
}

TEST(RunPlan, TheSameSeedGivesTheSameOrderAndAnotherSeedAnother) {
  ExperimentSpec spec;
  spec.factors = {{"v", {"a", "b", "c", "d"}}};
  spec.repetitions = 20;
  const auto order = [&](std::uint64_t seed) {
    spec.seed = seed;
    std::vector<std::size_t> cells;
    const Result<std::vector<PlannedRow>> rows = plan_rows(spec);
    for (const PlannedRow& row : *rows) cells.push_back(row.cell_index);
    return cells;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
  // Pinned values: a folder planned on another machine or by another version must give the same plan.
  const std::vector<std::size_t> cell_order = order(1);
  EXPECT_EQ(std::vector<std::size_t>(cell_order.begin(), cell_order.begin() + 8),
            (std::vector<std::size_t>{0, 1, 3, 2, 0, 2, 3, 1}));
}

TEST(RunPlan, WithinBlocksEveryPositionIsEquallyLikely) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  ExperimentSpec spec;
  spec.factors = {{"v", {"a", "b", "c"}}};
  spec.repetitions = 9000;
  spec.seed = seed;
  const Result<std::vector<PlannedRow>> rows = plan_rows(spec);
  std::map<std::pair<std::size_t, std::size_t>, int> count;  // [(cell, position within its block)]
  for (std::size_t number = 0; number < rows->size(); ++number) ++count[{rows->at(number).cell_index, number % 3}];
  for (const auto& [cell, times] : count) EXPECT_NEAR(times, 3000, 6 * 45) << cell.first << " " << cell.second;
}

TEST(RunPlan, SequentialOrderGroupsTheRepetitionsOfACell) {
  ExperimentSpec spec;
  spec.factors = {{"v", {"a", "b"}}};
  spec.repetitions = 2;
  spec.row_order = RowOrder::sequential;
  const Result<std::vector<PlannedRow>> rows = plan_rows(spec);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->at(1).cell_index, 0u);
  EXPECT_EQ(rows->at(1).block_number, 1u);
  EXPECT_EQ(rows->at(2).cell_index, 1u);
}

TEST(RunPlan, ExcludedCellsAreNotRun) {
  ExperimentSpec spec;
  spec.factors = {{"v", {"a", "b"}}, {"w", {"1", "2", "3"}}};
  spec.exclusions = {{{0}, {0, 2}}};
  EXPECT_EQ(list_planned_cells(spec).size(), 4u);
  spec.exclusions = {{{}, {}}};
  EXPECT_FALSE(plan_rows(spec));
}

TEST(RunPlan, RefusesTooManyRows) {
  ExperimentSpec spec;
  for (int i = 0; i < 40; ++i) spec.factors.push_back({"f", std::vector<std::string>(10, "x")});
  EXPECT_FALSE(plan_rows(spec));
}

TEST(PlanSummary, ComparisonsAreThoseOfTheFactorWithTheMost) {
  const std::vector<ExperimentFactor> factors = {{"a", {"1", "2", "3"}, true}, {"b", {"1", "2"}, true}};
  std::vector<std::vector<std::size_t>> cells;
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 2; ++b) cells.push_back({a, b});
  }
  EXPECT_EQ(count_comparisons(factors, cells), 6U);  // of a; b has 3
}

}  // namespace
}  // namespace joulemap::experiment
