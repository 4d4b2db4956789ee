// SPDX-License-Identifier: Apache-2.0
#include "statistics/nonnegative_least_squares.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace joulemap::statistics {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

// The normal equations with priors, scaled to a unit diagonal: columns are seconds that differ by orders of magnitude,
// and one tolerance then fits all unknowns.
struct ScaledNormalEquations {
  Matrix normal_matrix;  // unit diagonal
  Vector right_hand_side;
  Vector unknown_scales;  // x = scale * solution
};

ScaledNormalEquations scale_normal_equations(const NormalEquations& sums, std::span<const Prior> priors) {
  const auto size = static_cast<Eigen::Index>(sums.size());
  ScaledNormalEquations problem{Matrix(size, size), Vector(size), Vector(size)};
  for (Eigen::Index i = 0; i < size; ++i) {
    const auto unknown_index = static_cast<std::size_t>(i);
    JOULEMAP_CHECK(priors[unknown_index].precision > 0, "a prior needs a positive precision");
    problem.unknown_scales[i] =
        1 / std::sqrt(sums.gram(unknown_index, unknown_index) + priors[unknown_index].precision);
    problem.right_hand_side[i] =
        problem.unknown_scales[i] *
        (sums.moment(unknown_index) + priors[unknown_index].precision * priors[unknown_index].value);
  }
  for (Eigen::Index i = 0; i < size; ++i) {
    for (Eigen::Index j = 0; j < size; ++j) {
      const double precision = i == j ? priors[static_cast<std::size_t>(i)].precision : 0;
      const double gram = sums.gram(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
      problem.normal_matrix(i, j) = problem.unknown_scales[i] * problem.unknown_scales[j] * (gram + precision);
    }
  }
  return problem;
}

// Finds which unknowns are above zero (free) and which are zero. Exchanges all infeasible unknowns at once, and one at
// a time after three rounds without progress (Júdice and Pires, "A block principal pivoting algorithm for large-scale
// strictly monotone linear complementarity problems", 1994).
class BlockPivoting {
 public:
  explicit BlockPivoting(const ScaledNormalEquations& problem)
      : scaled_equations_(problem), is_free_(static_cast<std::size_t>(problem.right_hand_side.size()), true) {}

  bool solve() {
    std::size_t fewest_infeasible = std::numeric_limits<std::size_t>::max();
    int remaining_tries = kMaxTriesWithoutProgress;
    const std::size_t max_rounds = 20 + 10 * is_free_.size();
    for (std::size_t round = 0; round < max_rounds; ++round) {
      solve_free_unknowns();
      const std::vector<std::size_t> infeasible_unknowns = find_infeasible_unknowns();
      if (infeasible_unknowns.empty()) return true;
      if (infeasible_unknowns.size() < fewest_infeasible) {
        fewest_infeasible = infeasible_unknowns.size();
        remaining_tries = kMaxTriesWithoutProgress;
      } else {
        --remaining_tries;
      }
      if (remaining_tries > 0) {
        for (const std::size_t i : infeasible_unknowns) is_free_[i] = !is_free_[i];
      } else {
        is_free_[infeasible_unknowns.back()] =
            !is_free_[infeasible_unknowns.back()];  // Murty's rule: always terminates
      }
    }
    return false;
  }
  const Vector& solution() const { return x_; }

 private:
  static constexpr int kMaxTriesWithoutProgress = 3;
  static constexpr double kFeasibilityTolerance = 1e-12;

  void solve_free_unknowns() {
    std::vector<Eigen::Index> free_unknowns;
    for (std::size_t i = 0; i < is_free_.size(); ++i) {
      if (is_free_[i]) free_unknowns.push_back(static_cast<Eigen::Index>(i));
    }
    x_ = Vector::Zero(scaled_equations_.right_hand_side.size());
    if (!free_unknowns.empty()) {
      const Matrix part = scaled_equations_.normal_matrix(free_unknowns, free_unknowns);
      const Vector target = scaled_equations_.right_hand_side(free_unknowns);
      const Vector free_solution = Eigen::LDLT<Matrix>(part).solve(target);
      x_(free_unknowns) = free_solution;
    }
    gradient_ = scaled_equations_.normal_matrix * x_ - scaled_equations_.right_hand_side;
  }

  std::vector<std::size_t> find_infeasible_unknowns() const {
    const double tolerance =
        kFeasibilityTolerance * std::max(scaled_equations_.right_hand_side.cwiseAbs().maxCoeff(), 1e-300);
    std::vector<std::size_t> infeasible_unknowns;
    for (std::size_t i = 0; i < is_free_.size(); ++i) {
      const auto unknown_index = static_cast<Eigen::Index>(i);
      if (is_free_[i] ? x_[unknown_index] < 0 : gradient_[unknown_index] < -tolerance) infeasible_unknowns.push_back(i);
    }
    return infeasible_unknowns;
  }

  const ScaledNormalEquations& scaled_equations_;
  std::vector<bool> is_free_;
  Vector x_;
  Vector gradient_;
};

}  // namespace

void NormalEquations::add_observation(std::span<const double> row, double value, double weight) {
  JOULEMAP_CHECK(row.size() == size(), "a row of another problem");
  // Two thirds of a fit's time are spent here. Therefore only the upper triangle is computed, with Eigen's vector
  // instructions.
  const Eigen::Map<const Vector> row_vector(row.data(), static_cast<Eigen::Index>(size()));
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] == 0) continue;
    const double weighted = weight * row[i];
    moments_[i] += weighted * value;
    const auto tail_size = static_cast<Eigen::Index>(size() - i);
    Eigen::Map<Vector>(gram_.data() + i * size() + i, tail_size).noalias() += weighted * row_vector.tail(tail_size);
  }
  weighted_square_sum_ += weight * value * value;
  total_weight_ += weight;
}

void NormalEquations::add(const NormalEquations& other_equations, double weight) {
  JOULEMAP_CHECK(other_equations.size() == size(), "sums of another problem");
  for (std::size_t i = 0; i < gram_.size(); ++i) gram_[i] += weight * other_equations.gram_[i];
  for (std::size_t i = 0; i < moments_.size(); ++i) moments_[i] += weight * other_equations.moments_[i];
  weighted_square_sum_ += weight * other_equations.weighted_square_sum_;
  total_weight_ += weight * other_equations.total_weight_;
}

double NormalEquations::residual_sum_of_squares(std::span<const double> x) const {
  double sum = weighted_square_sum_;
  for (std::size_t i = 0; i < size(); ++i) {
    double product = 0;
    for (std::size_t j = 0; j < size(); ++j) product += gram(i, j) * x[j];
    sum += x[i] * (product - 2 * moments_[i]);
  }
  return std::max(sum, 0.0);
}

NormalEquations NormalEquations::with_grouped_unknowns(std::span<const std::size_t> group_indices,
                                                       std::size_t groups) const {
  NormalEquations sums(groups);
  for (std::size_t i = 0; i < size(); ++i) {
    sums.moments_[group_indices[i]] += moments_[i];
    for (std::size_t j = 0; j < size(); ++j) sums.gram_[group_indices[i] * groups + group_indices[j]] += gram(i, j);
  }
  sums.weighted_square_sum_ = weighted_square_sum_;
  sums.total_weight_ = total_weight_;
  return sums;
}

NormalEquations NormalEquations::with_shared_mean_unknown(std::size_t members) const {
  NormalEquations sums(size() + 1);
  for (std::size_t i = 0; i < size(); ++i) {
    sums.moments_[i] = moments_[i];
    if (i < members) sums.moments_.back() += moments_[i];
    for (std::size_t j = 0; j < size(); ++j) {
      sums.gram_[i * sums.size() + j] = gram(i, j);
      if (j < members) sums.gram_[i * sums.size() + size()] += gram(i, j);
      if (i < members) sums.gram_[size() * sums.size() + j] += gram(i, j);
      if (i < members && j < members) sums.gram_.back() += gram(i, j);
    }
  }
  sums.weighted_square_sum_ = weighted_square_sum_;
  sums.total_weight_ = total_weight_;
  return sums;
}

NormalEquations NormalEquations::with_differences_from(std::size_t base) const {
  NormalEquations sums = *this;
  std::vector<double> columns(size());
  double gram_sum = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t j = 0; j < size(); ++j) columns[i] += gram(i, j);
    gram_sum += columns[i];
  }
  sums.moments_[base] = 0;
  for (const double moment : moments_) sums.moments_[base] += moment;
  for (std::size_t i = 0; i < size(); ++i) {
    const double gram_with_base = i == base ? gram_sum : columns[i];
    sums.gram_[i * size() + base] = sums.gram_[base * size() + i] = gram_with_base;
  }
  return sums;
}

NormalEquations NormalEquations::with_weighted_sum_unknown(std::span<const double> weights) const {
  JOULEMAP_CHECK(weights.size() == size(), "a weight for each unknown");
  NormalEquations sums(size() + 1);
  for (std::size_t i = 0; i < size(); ++i) {
    double weighted_gram_sum = 0;
    for (std::size_t j = 0; j < size(); ++j) {
      sums.gram_[i * sums.size() + j] = gram(i, j);
      weighted_gram_sum += weights[j] * gram(i, j);
    }
    sums.gram_[i * sums.size() + size()] = sums.gram_[size() * sums.size() + i] = weighted_gram_sum;
    sums.gram_.back() += weights[i] * weighted_gram_sum;
    sums.moments_[i] = moments_[i];
    sums.moments_.back() += weights[i] * moments_[i];
  }
  sums.weighted_square_sum_ = weighted_square_sum_;
  sums.total_weight_ = total_weight_;
  return sums;
}

NonnegativeFit nonnegative_least_squares(const NormalEquations& sums, std::span<const Prior> priors) {
  JOULEMAP_CHECK(priors.size() == sums.size(), "one prior for each unknown");
  NonnegativeFit fit;
  if (sums.size() == 0) return fit;
  const ScaledNormalEquations problem = scale_normal_equations(sums, priors);
  BlockPivoting pivoting(problem);
  fit.has_converged = pivoting.solve();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto unknown_index = static_cast<Eigen::Index>(i);
    fit.x.push_back(std::max(problem.unknown_scales[unknown_index] * pivoting.solution()[unknown_index], 0.0));
  }
  return fit;
}

std::vector<double> least_squares(const NormalEquations& sums, std::span<const Prior> priors) {
  JOULEMAP_CHECK(priors.size() == sums.size(), "one prior for each unknown");
  if (sums.size() == 0) return {};
  const ScaledNormalEquations problem = scale_normal_equations(sums, priors);
  const Vector scaled_solution = Eigen::LDLT<Matrix>(problem.normal_matrix).solve(problem.right_hand_side);
  std::vector<double> x;
  for (Eigen::Index i = 0; i < scaled_solution.size(); ++i) x.push_back(problem.unknown_scales[i] * scaled_solution[i]);
  return x;
}

std::vector<double> unscaled_posterior_covariance(const NormalEquations& sums, std::span<const Prior> priors) {
  JOULEMAP_CHECK(priors.size() == sums.size(), "one prior for each unknown");
  if (sums.size() == 0) return {};
  const ScaledNormalEquations problem = scale_normal_equations(sums, priors);
  const auto size = problem.right_hand_side.size();
  const Matrix inverse_matrix = Eigen::LDLT<Matrix>(problem.normal_matrix).solve(Matrix::Identity(size, size));
  std::vector<double> rows;
  for (Eigen::Index i = 0; i < size; ++i) {
    for (Eigen::Index j = 0; j < size; ++j)
      rows.push_back(problem.unknown_scales[i] * problem.unknown_scales[j] * inverse_matrix(i, j));
  }
  return rows;
}

}  // namespace joulemap::statistics
