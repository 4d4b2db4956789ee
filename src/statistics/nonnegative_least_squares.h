// SPDX-License-Identifier: Apache-2.0
//
// Nonnegative least squares with a prior for each unknown: the x >= 0 that minimizes |A x - y|^2 + sum_k precision_k
// (x_k - prior_k)^2. Observations are only summed, to A'A and A'y: the size of the problem depends on the number of
// unknowns (up to a few hundred), not on the length of the run. Same input, same bits. Pure; one thread.
//
// With precision = (noise / standard deviation of the prior)^2, x is the maximum a posteriori. 1 - precision_k *
// inverse_kk is then the fraction of x_k that comes from the observations (inverse: unscaled_posterior_covariance()): 1
// if observations alone determine it, 0 if the prior alone does.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace joulemap::statistics {

// A'A, A'y and y'y of weighted observations. Sums of blocks of observations can be stored separately and added later.
class NormalEquations {
 public:
  explicit NormalEquations(std::size_t unknown_count = 0)
      : moments_(unknown_count), gram_(unknown_count * unknown_count) {}

  std::size_t size() const { return moments_.size(); }
  void add_observation(std::span<const double> row, double value, double weight = 1);
  void add(const NormalEquations& other_equations, double weight = 1);

  double gram(std::size_t i, std::size_t j) const { return i <= j ? gram_[i * size() + j] : gram_[j * size() + i]; }
  double moment(std::size_t i) const { return moments_[i]; }
  double total_weight() const { return total_weight_; }  // sum of weights
  // Weighted sum of squared residuals of x.
  double residual_sum_of_squares(std::span<const double> x) const;
  // Makes unknowns equal: unknown i of these equations becomes unknown group_indices[i] of the result.
  NormalEquations with_grouped_unknowns(std::span<const std::size_t> group_indices, std::size_t groups) const;
  // Appends an unknown: the mean shared by the first `members` unknowns, which are then deviations from it.
  NormalEquations with_shared_mean_unknown(std::size_t members) const;
  // The other unknowns become differences from unknown `base`, whose column becomes the sum of all columns.
  NormalEquations with_differences_from(std::size_t base) const;
  // Appends an unknown whose column is the weighted sum of all columns.
  NormalEquations with_weighted_sum_unknown(std::span<const double> weights) const;

 private:
  std::vector<double> moments_;
  std::vector<double> gram_;  // symmetric: only the upper triangle is used
  double weighted_square_sum_ = 0;
  double total_weight_ = 0;
};

struct Prior {
  double value = 0;
  double precision = 0;  // (noise / standard deviation)^2; must be above 0, which makes every problem solvable
};

struct NonnegativeFit {
  std::vector<double> x;
  bool has_converged = true;  // false: x is feasible, but not optimal
};

NonnegativeFit nonnegative_least_squares(const NormalEquations& sums, std::span<const Prior> priors);
// The same minimum without the constraint x >= 0.
std::vector<double> least_squares(const NormalEquations& sums, std::span<const Prior> priors);

// The inverse of A'A + diag(precision), row by row. Times the noise variance it is the posterior covariance of x.
std::vector<double> unscaled_posterior_covariance(const NormalEquations& sums, std::span<const Prior> priors);

}  // namespace joulemap::statistics
