// SPDX-License-Identifier: Apache-2.0
#include "predict/model/learned_residual.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "predict/model/tree_text.h"

namespace joulemap::predict {
namespace {

// A target that is a step of the first feature, with noise.
TreeTrainingData make_step_data(double noise_sd) {
  TreeTrainingData rows;
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::normal_distribution<double> noise(0, noise_sd);
  for (int i = 0; i < 1500; ++i) {
    const std::array<float, 3> row = {uniform(generator), uniform(generator), uniform(generator)};
    rows.add(row, (row[0] > 0.5F ? 1.0 : -1.0) + noise(generator), 1);
  }
  return rows;
}

TEST(LearnedResidual, EveryLearnerHasANameThatFindsIt) {
  for (std::size_t i = 0; i < kLearnerNames.size(); ++i) {
    const auto learner = static_cast<Learner>(i);
    EXPECT_EQ(find_learner(name_of(learner)), learner);
  }
  EXPECT_FALSE(find_learner("oracle"));
}

TEST(LearnedResidual, TreesLearnAStepAndALineDoesNot) {
  const TreeTrainingData rows = make_step_data(0.05);
  const auto error = [&](Learner learner) {
    const Result<LearnedResidual> residual = fit_learned_residual(learner, rows, {});
    EXPECT_TRUE(residual);
    return std::fabs(residual->predict(std::array<float, 3>{0.55F, 0.5F, 0.5F}) - 1);
  };
  EXPECT_LT(error(Learner::boosting), 0.15);
  EXPECT_LT(error(Learner::forest), 0.15);
  EXPECT_GT(error(Learner::linear), 0.4);
  EXPECT_EQ(error(Learner::none), 1);
}

// Leaves hold their part of the mean, so that the trees of a profile are summed in the same way for all learners.
TEST(LearnedResidual, AForestIsTheMeanOfItsTrees) {
  const Result<LearnedResidual> forest = fit_learned_residual(Learner::forest, make_step_data(0.05), {});
  ASSERT_TRUE(forest);
  EXPECT_GT(forest->trees.roots.size(), 50u);
  EXPECT_NEAR(forest->predict(std::array<float, 3>{0.9F, 0.5F, 0.5F}), 1, 0.1);
  const Result<RegressionTrees> parsed_trees = read_trees(trees_text(forest->trees), 3);
  ASSERT_TRUE(parsed_trees);
  EXPECT_NEAR(parsed_trees->predict(std::array<float, 3>{0.2F, 0.5F, 0.5F}), -1, 0.1);
}

}  // namespace
}  // namespace joulemap::predict
