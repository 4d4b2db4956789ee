// SPDX-License-Identifier: Apache-2.0
#include "statistics/cholesky.h"

#include <gtest/gtest.h>

namespace joulemap::statistics {
namespace {

TEST(Cholesky, FactorsASymmetricMatrixAndReadsOnlyItsLowerTriangle) {
  const double unread_element = 1e9;
  const std::vector<double> lower = cholesky_factor(std::vector<double>{4, unread_element, 2, 5}, 2);
  EXPECT_EQ(lower, (std::vector<double>{2, 0, 1, 2}));
}

TEST(Cholesky, ReplacesAPivotThatRoundingMadeNegative) {
  const std::vector<double> matrix{1, 1, 1, 1 - 1e-17 - 1e-16};
  EXPECT_EQ(cholesky_factor(matrix, 2)[3], 0);
  EXPECT_EQ(cholesky_factor(matrix, 2, 1e-12)[3], 1e-6);
}

TEST(Cholesky, CholeskyFactorsSolveTheEquations) {
  std::vector<double> b{8, 12};
  solve_cholesky(cholesky_factor(std::vector<double>{4, 2, 2, 5}, 2), b);
  EXPECT_NEAR(b[0], 1, 1e-12);
  EXPECT_NEAR(b[1], 2, 1e-12);
}

}  // namespace
}  // namespace joulemap::statistics
