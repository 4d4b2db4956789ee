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
  for (std::size_t r = 0; r < rows; ++r) {
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

// Solves for the unknowns in the bit set `set` by plain elimination, with all others at zero; nothing if one of them is
// negative. best_support_solution() tries every set and takes the best.
std::optional<std::vector<double>> solve_on_support(const RandomProblem& problem, std::uint32_t set) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < problem.sums.size(); ++i) {
    if (set >> i & 1) at.push_back(i);
  }
  std::vector<std::vector<double>> lines;
  for (const std::size_t i : at) {
    std::vector<double> line;
    for (const std::size_t j : at) line.push_back(problem.sums.gram(i, j) + (i == j ? problem.priors[i].precision : 0));
    line.push_back(problem.sums.moment(i) + problem.priors[i].precision * problem.priors[i].value);
    lines.push_back(line);
  }
  for (std::size_t c = 0; c < at.size(); ++c) {
    for (std::size_t r = 0; r < at.size(); ++r) {
      if (r == c) continue;
      const double factor = lines[r][c] / lines[c][c];
      for (std::size_t k = 0; k <= at.size(); ++k) lines[r][k] -= factor * lines[c][k];
    }
  }
  std::vector<double> x(problem.sums.size());
  for (std::size_t c = 0; c < at.size(); ++c) {
    x[at[c]] = lines[c].back() / lines[c][c];
    if (x[at[c]] < 0) return std::nullopt;
  }
  return x;
}

std::vector<double> best_support_solution(const RandomProblem& problem) {
  std::vector<double> best(problem.sums.size());
  for (std::uint32_t set = 0; set < (1U << problem.sums.size()); ++set) {
    const std::optional<std::vector<double>> x = solve_on_support(problem, set);
    if (x && squared_residual(problem, *x) < squared_residual(problem, best)) best = *x;
  }
  return best;
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
    const std::vector<double> best = best_support_solution(problem);
    for (std::size_t i = 0; i < best.size(); ++i) EXPECT_NEAR(fit.x[i], best[i], 1e-5 * (1 + best[i])) << i;
  }
}

TEST(NonnegativeLeastSquares, WithoutObservationsTheSolutionIsThePrior) {
  const std::vector<Prior> priors = {{120, 0.1}, {300, 1}};
  const NonnegativeFit fit = nonnegative_least_squares(NormalEquations(2), priors);
  EXPECT_NEAR(fit.x[0], 120, 1e-9);
  EXPECT_NEAR(fit.x[1], 300, 1e-9);
  const std::vector<double> inverse = unscaled_posterior_covariance(NormalEquations(2), priors);
  EXPECT_NEAR(1 - 0.1 * inverse[0], 0, 1e-12);
}

TEST(NonnegativeLeastSquares, PriorSplitsInseparableUnknownsAndObservationsFixTheirSum) {
  NormalEquations sums(2);
  const std::vector<double> row = {1, 1};
  for (int i = 0; i < 1000; ++i) sums.add_observation(row, 500);
  const std::vector<Prior> priors = {{100, 0.01}, {200, 0.01}};
  const NonnegativeFit fit = nonnegative_least_squares(sums, priors);
  EXPECT_NEAR(fit.x[0] + fit.x[1], 500, 0.1);
  EXPECT_NEAR(fit.x[1] - fit.x[0], 100, 0.1);
  const std::vector<double> inverse = unscaled_posterior_covariance(sums, priors);
  EXPECT_NEAR(1 - 0.01 * inverse[0], 0.5, 0.01);  // data give the sum, the prior the difference
  const std::vector<std::size_t> groups = {0, 0};
  const NormalEquations grouped = sums.with_grouped_unknowns(groups, 1);
  EXPECT_NEAR(nonnegative_least_squares(grouped, std::vector<Prior>{{100, 0.01}}).x[0], 250, 0.1);
}

TEST(NonnegativeLeastSquares, SumsOfBlocksEqualSumsOfTheirObservations) {
  constexpr std::uint64_t kSeed = 21;
  std::mt19937_64 random(kSeed);
  NormalEquations whole(3);
  NormalEquations first(3);
  NormalEquations second(3);
  for (int i = 0; i < 20; ++i) {
    std::vector<double> row;
    for (int k = 0; k < 3; ++k) row.push_back(static_cast<double>(random() % 100));
    const auto value = static_cast<double>(random() % 1000);
    whole.add_observation(row, value);
    (i < 8 ? first : second).add_observation(row, value);
  }
  first.add(second);
  const std::vector<double> x = {1, 2, 3};
  EXPECT_NEAR(first.residual_sum_of_squares(x), whole.residual_sum_of_squares(x),
              1e-6 * whole.residual_sum_of_squares(x))
      << "seed " << kSeed;
  EXPECT_DOUBLE_EQ(first.total_weight(), 20);
}

TEST(NonnegativeLeastSquares, UnknownsCanBeRelativeToABase) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const NormalEquations sums = random_problem(random).sums;
    const std::size_t base = random() % sums.size();
    std::vector<double> above(sums.size());
    for (double& value : above) value = std::normal_distribution<double>()(random);
    std::vector<double> absolute = above;
    for (std::size_t i = 0; i < above.size(); ++i) absolute[i] += i == base ? 0 : above[base];
    const double left = sums.residual_sum_of_squares(absolute);
    EXPECT_NEAR(sums.with_differences_from(base).residual_sum_of_squares(above), left, 1e-9 * (1 + left));
  }
}

TEST(NonnegativeLeastSquares, HundredsOfUnknownsMeetTheOptimalityConditions) {
  constexpr std::uint64_t kSeed = 22;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  std::normal_distribution<double> normal;
  constexpr std::size_t kSize = 200;
  NormalEquations sums(kSize);
  for (int r = 0; r < 300; ++r) {
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
