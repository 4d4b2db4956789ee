// SPDX-License-Identifier: Apache-2.0
#include "predict/model/linear_function.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace joulemap::predict {
namespace {

TEST(LinearFunction, FindsTheSlopesOfALinearTarget) {
  TreeTrainingData rows;
  std::mt19937 generator(5);
  std::uniform_real_distribution<float> uniform(0, 4);
  for (int i = 0; i < 4000; ++i) {
    const std::array<float, 3> row = {uniform(generator), uniform(generator), 1.5F};  // the last one is constant
    rows.add(row, 0.25 + 0.5 * row[0] - 0.3 * row[1], 1);
  }
  const LinearFunction function = fit_linear_function(rows);
  ASSERT_EQ(function.slopes.size(), 3u);
  EXPECT_NEAR(function.slopes[0], 0.5, 0.002);
  EXPECT_NEAR(function.slopes[1], -0.3, 0.002);
  EXPECT_EQ(function.slopes[2], 0);
  EXPECT_NEAR(function.predict(std::array<float, 3>{2, 1, 1.5F}), 0.95, 0.005);
}

TEST(LinearFunction, RowsOfNoWeightDoNotCount) {
  TreeTrainingData rows;
  for (int i = 0; i < 200; ++i) {
    const std::array<float, 1> row = {static_cast<float>(i % 10)};
    rows.add(row, 0.1 * row[0], 1);
    rows.add(row, 7, 0);
  }
  EXPECT_NEAR(fit_linear_function(rows).predict(std::array<float, 1>{5}), 0.5, 0.02);
}

TEST(LinearFunction, IsLimitedFarFromTheData) {
  const LinearFunction steep_function{{1}, 0};
  EXPECT_EQ(steep_function.predict(std::array<float, 1>{1e6F}), kMaxLinearResidual);
  EXPECT_EQ(steep_function.predict(std::array<float, 1>{-1e6F}), -kMaxLinearResidual);
}

TEST(LinearFunction, WithoutRowsIsZero) { EXPECT_EQ(fit_linear_function({}).predict(std::array<float, 1>{3}), 0); }

}  // namespace
}  // namespace joulemap::predict
