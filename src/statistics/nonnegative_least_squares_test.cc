// SPDX-License-Identifier: Apache-2.0
#include "statistics/nonnegative_least_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>

namespace joulemap::statistics {
namespace {

struct RandomProblem {
  NormalEquations sums;
  std::vector<Prior> priors;
};

// Observations of busy times: sparse, with some columns equal and some empty; some true values are negative.
RandomProblem random_problem(std::mt19937_64& random) {
  const std::size_t size = 1 + random() % 12;
  const std::size_t rows = random() % 40;
  std::normal_distribution<double> normal;
  RandomProblem problem{NormalEquations(size), {}};
  std::vector<double> truth;
  for (std::size_t i = 0; i < size; ++i) {
    truth.push_back(100 * normal(random));
    problem.priors.push_back({std::abs(100 * normal(random)), std::exp(3 * normal(random) - 4)});
  }
  for (std::size_t observation_index = 0; observation_index < rows; ++observation_index) {
    std::vector<double> row(size);
    double value = normal(random);
    for (std::size_t i = 0; i < size; ++i) {
      row[i] = i % 5 == 4 ? row[i - 1] : random() % 3 == 0 ? 0 : std::abs(normal(random));
      value += row[i] * truth[i];
    }
    problem.sums.add_observation(row, value, 0.5 + static_cast<double>(random() % 3));
  }
  return problem;
}

double squared_residual(const RandomProblem& problem, const std::vector<double>& x) {
  double sum = problem.sums.residual_sum_of_squares(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += problem.priors[i].precision * (x[i] - problem.priors[i].value) * (x[i] - problem.priors[i].value);
  }
  return sum;
}

// Solves for the unknowns in the bit set `support_mask` by plain elimination, with all others at zero; nothing if one
// of them is negative. best_support_solution() tries every set and takes the best.
std::optional<std::vector<double>> solve_on_support(const RandomProblem& problem, std::uint32_t support_mask) {
  std::vector<std::size_t> support_indices;
  for (std::size_t i = 0; i < problem.sums.size(); ++i) {
    if (support_mask >> i & 1) support_indices.push_back(i);
  }
  std::vector<std::vector<double>> lines;
  for (const std::size_t i : support_indices) {
    std::vector<double> line;
    for (const std::size_t j : support_indices)
      line.push_back(problem.sums.gram(i, j) + (i == j ? problem.priors[i].precision : 0));
    line.push_back(problem.sums.moment(i) + problem.priors[i].precision * problem.priors[i].value);
    lines.push_back(line);
  }
  for (std::size_t pivot_column = 0; pivot_column < support_indices.size(); ++pivot_column) {
    for (std::size_t row_index = 0; row_index < support_indices.size(); ++row_index) {
      if (row_index == pivot_column) continue;
      const double factor = lines[row_index][pivot_column] / lines[pivot_column][pivot_column];
      for (std::size_t k = 0; k <= support_indices.size(); ++k) lines[row_index][k] -= factor * lines[pivot_column][k];
    }
  }
  std::vector<double> x(problem.sums.size());
  for (std::size_t column_index = 0; column_index < support_indices.size(); ++column_index) {
    x[support_indices[column_index]] = lines[column_index].back() / lines[column_index][column_index];
    if (x[support_indices[column_index]] < 0) return std::nullopt;
  }
  return x;
}

std::vector<double> best_support_solution(const RandomProblem& problem) {
  std::vector<double> best_solution(problem.sums.size());
  for (std::uint32_t support_mask = 0; support_mask < (1U << problem.sums.size()); ++support_mask) {
    const std::optional<std::vector<double>> x = solve_on_support(problem, support_mask);
    if (x && squared_residual(problem, *x) < squared_residual(problem, best_solution)) best_solution = *x;
  }
  return best_solution;
}

TEST(NonnegativeLeastSquares, SolutionIsTheBestOfAllFeasibleSets) {
  constexpr std::uint64_t kSeed = 20;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const RandomProblem problem = random_problem(random);
    const NonnegativeFit fit = nonnegative_least_squares(problem.sums, problem.priors);
    ASSERT_TRUE(fit.has_converged);
    const std::vector<double> best_solution = best_support_solution(problem);
    for (std::size_t i = 0; i < best_solution.size(); ++i)
      EXPECT_NEAR(fit.x[i], best_solution[i], 1e-5 * (1 + best_solution[i])) << i;
  }
}

TEST(NonnegativeLeastSquares, WithoutObservationsTheSolutionIsThePrior) {
  const std::vector<Prior> priors = {{120, 0.1}, {300, 1}};
  const NonnegativeFit fit = nonnegative_least_squares(NormalEquations(2), priors);
  EXPECT_NEAR(fit.x[0], 120, 1e-9);
  EXPECT_NEAR(fit.x[1], 300, 1e-9);
  const std::vector<double> posterior_covariance = unscaled_posterior_covariance(NormalEquations(2), priors);
  EXPECT_NEAR(1 - 0.1 * posterior_covariance[0], 0, 1e-12);
}

TEST(NonnegativeLeastSquares, PriorSplitsInseparableUnknownsAndObservationsFixTheirSum) {
  NormalEquations sums(2);
  const std::vector<double> row = {1, 1};
  for (int i = 0; i < 1000; ++i) sums.add_observation(row, 500);
  const std::vector<Prior> priors = {{100, 0.01}, {200, 0.01}};
  const NonnegativeFit fit = nonnegative_least_squares(sums, priors);
  EXPECT_NEAR(fit.x[0] + fit.x[1], 500, 0.1);
  EXPECT_NEAR(fit.x[1] - fit.x[0], 100, 0.1);
  const std::vector<double> posterior_covariance = unscaled_posterior_covariance(sums, priors);
  EXPECT_NEAR(1 - 0.01 * posterior_covariance[0], 0.5, 0.01);  // data give the sum, the prior the difference
  const std::vector<std::size_t> groups = {0, 0};
  const NormalEquations grouped = sums.with_grouped_unknowns(groups, 1);
  EXPECT_NEAR(nonnegative_least_squares(grouped, std::vector<Prior>{{100, 0.01}}).x[0], 250, 0.1);
}

TEST(NonnegativeLeastSquares, SumsOfBlocksEqualSumsOfTheirObservations) {
  constexpr std::uint64_t kSeed = 21;
  std::mt19937_64 random(kSeed);
  NormalEquations total_sums(3);
  NormalEquations first_block_sums(3);
  NormalEquations second_block_sums(3);
  for (int i = 0; i < 20; ++i) {
    std::vector<double> row;
    for (int k = 0; k < 3; ++k) row.push_back(static_cast<double>(random() % 100));
    const auto value = static_cast<double>(random() % 1000);
    total_sums.add_observation(row, value);
    (i < 8 ? first_block_sums : second_block_sums).add_observation(row, value);
  }
  first_block_sums.add(second_block_sums);
  const std::vector<double> x = {1, 2, 3};
  EXPECT_NEAR(first_block_sums.residual_sum_of_squares(x), total_sums.residual_sum_of_squares(x),
              1e-6 * total_sums.residual_sum_of_squares(x))
      << "seed " << kSeed;
  EXPECT_DOUBLE_EQ(first_block_sums.total_weight(), 20);
}

TEST(NonnegativeLeastSquares, UnknownsCanBeRelativeToABase) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const NormalEquations sums = random_problem(random).sums;
    const std::size_t base = random() % sums.size();
    std::vector<double> relative_values(sums.size());
    for (double& value : relative_values) value = std::normal_distribution<double>()(random);
    std::vector<double> absolute_values = relative_values;
    for (std::size_t i = 0; i < relative_values.size(); ++i)
      absolute_values[i] += i == base ? 0 : relative_values[base];
    const double residual_square_sum = sums.residual_sum_of_squares(absolute_values);
    EXPECT_NEAR(sums.with_differences_from(base).residual_sum_of_squares(relative_values), residual_square_sum,
                1e-9 * (1 + residual_square_sum));
  }
}

TEST(NonnegativeLeastSquares, HundredsOfUnknownsMeetTheOptimalityConditions) {
  constexpr std::uint64_t kSeed = 22;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  std::normal_distribution<double> normal;
  constexpr std::size_t kSize = 200;
  NormalEquations sums(kSize);
  for (int observation_index = 0; observation_index < 300; ++observation_index) {
    std::vector<double> row(kSize);
    for (double& time : row) time = random() % 4 == 0 ? std::abs(normal(random)) : 0;
    sums.add_observation(row, 100 * normal(random));
  }
  const std::vector<Prior> priors(kSize, Prior{10, 0.5});
  const NonnegativeFit fit = nonnegative_least_squares(sums, priors);
  ASSERT_TRUE(fit.has_converged);
  for (std::size_t i = 0; i < kSize; ++i) {
    double slope = 0.5 * (fit.x[i] - 10) - sums.moment(i);
    for (std::size_t j = 0; j < kSize; ++j) slope += sums.gram(i, j) * fit.x[j];
    EXPECT_GE(fit.x[i], 0);
    EXPECT_GE(slope, -1e-6);
    EXPECT_NEAR(fit.x[i] * slope, 0, 1e-4);
  }
}

}  // namespace
}  // namespace joulemap::statistics
