// SPDX-License-Identifier: Apache-2.0
#include "predict/model/regression_trees.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "predict/model/tree_text.h"

namespace joulemap::predict {
namespace {

TreeTrainingData steps() {
  TreeTrainingData rows;
  std::mt19937 chance(7);
  std::uniform_real_distribution<float> uniform_distribution(0, 1);
  for (int index = 0; index < 600; ++index) {
    const std::array<float, 2> row = {uniform_distribution(chance), uniform_distribution(chance)};
    rows.add(row, row[0] > 0.5 ? 1.0 : -1.0, 1);
  }
  return rows;
}

TEST(RegressionTrees, RegressionTreesLearnAStepFunctionOfOneColumn) {
  TreeFitOptions options;
  options.boosting_rounds = 60;
  options.max_depth = 3;
  const Result<RegressionTrees> trees = fit_trees(steps(), options);
  ASSERT_TRUE(trees) << trees.error().message;
  EXPECT_NEAR(trees->predict(std::array<float, 2>{0.9F, 0.2F}), 1, 0.1);
  EXPECT_NEAR(trees->predict(std::array<float, 2>{0.1F, 0.8F}), -1, 0.1);
}

TEST(RegressionTrees, RegressionTreesAreMonotonicInAMonotonicColumn) {
  TreeFitOptions options;
  options.boosting_rounds = 40;
  options.monotone_constraints = {-1, 0};
  const Result<RegressionTrees> trees = fit_trees(steps(), options);
  ASSERT_TRUE(trees);
  double previous_prediction = INFINITY;
  for (float at = 0.05F; at < 1; at += 0.05F) {
    const double current_prediction = trees->predict(std::array<float, 2>{at, 0.5F});
    EXPECT_LE(current_prediction, previous_prediction + 1e-9);
    previous_prediction = current_prediction;
  }
}

TEST(RegressionTrees, RegressionTreesRoundTripThroughText) {
  TreeFitOptions options;
  options.boosting_rounds = 20;
  const Result<RegressionTrees> trees = fit_trees(steps(), options);
  ASSERT_TRUE(trees);
  const Result<RegressionTrees> parsed_trees = read_trees(trees_text(*trees), 2);
  ASSERT_TRUE(parsed_trees);
  for (float at = 0.02F; at < 1; at += 0.1F) {
    EXPECT_NEAR(trees->predict(std::array<float, 2>{at, 1 - at}),
                parsed_trees->predict(std::array<float, 2>{at, 1 - at}), 1e-3);
  }
}

TEST(RegressionTrees, RegressionTreesRefuseTextsThatAreNoTrees) {
  EXPECT_FALSE(read_trees("0<0.5 1", 2));      // no right child
  EXPECT_FALSE(read_trees("7<0.5 1 2", 2));    // a feature out of range
  EXPECT_FALSE(read_trees("0<0.5 one 2", 2));  // not a number
  EXPECT_TRUE(read_trees("", 2));              // no trees: sums to 0
}

TEST(RegressionTrees, RegressionTreesRefuseNonFiniteNumbers) {
  for (const char* text : {"nan", "inf", "-inf", "0<nan 1 1", "0<inf 1 1", "0<1 nan 1", "1e39"}) {
    EXPECT_FALSE(read_trees(text, 2)) << text;
  }
}

TEST(TrainingRange, TrustsSizesInsideTheRangeAndLessThoseFarBeyond) {
  TrainingRange training_range;
  training_range.extend_by_row(std::array<float, 2>{0, 0});
  training_range.extend_by_row(std::array<float, 2>{1, 1});
  EXPECT_EQ(training_range.trust_factor(std::array<float, 2>{0.5F, 0.25F}), 1);
  EXPECT_NEAR(training_range.trust_factor(std::array<float, 2>{2, 0.5F}), 0.5, 1e-6);
  EXPECT_LT(training_range.trust_factor(std::array<float, 2>{12, 0.5F}), 0.001);
}

}  // namespace
}  // namespace joulemap::predict
