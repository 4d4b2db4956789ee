// SPDX-License-Identifier: Apache-2.0
//
// Least squares with unknowns that cannot be negative, each pulled towards what is believed of it beforehand: the x >= 0
// that makes  |A x - y|^2 + sum_k pull_k (x_k - prior_k)^2  least. Rows are seen once, as the sums A'A and A'y: a problem
// is as large as its unknowns (up to a few hundred), however long the run. Same input, same bits. Pure; one thread.
//
// With pull = (noise / belief's spread)^2 this is the most likely x, and 1 - pull_k * inverse_kk says how much of it comes
// from the rows: 1 where they tell everything, 0 where it is belief alone.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace joulemap::statistics {

// A'A, A'y and y'y of rows, each counted with a weight. Sums of sums are sums: blocks of rows can be kept apart and added.
class GramSums {
 public:
  explicit GramSums(std::size_t unknowns = 0) : moments_(unknowns), gram_(unknowns * unknowns) {}

  std::size_t size() const { return moments_.size(); }
  void add_row(std::span<const double> row, double value, double weight = 1);
  void add(const GramSums& other, double weight = 1);

  double gram(std::size_t i, std::size_t j) const { return i <= j ? gram_[i * size() + j] : gram_[j * size() + i]; }
  double moment(std::size_t i) const { return moments_[i]; }
  double rows() const { return rows_; }  // sum of weights
  // Weighted sum of squares of what x leaves over.
  double residual(std::span<const double> x) const;
  // Unknowns that share one value: column i of the rows goes to group_of[i].
  GramSums grouped(std::span<const std::size_t> group_of, std::size_t groups) const;
  // One more unknown, the last: what the first `members` have in common, so that they stand for their differences from it.
  GramSums with_common(std::size_t members) const;
  // The others stand for what they are above this one, whose column becomes the sum of all.
  GramSums above(std::size_t base) const;
  // One more unknown, the last, whose column is the sum of all columns, each times its weight.
  GramSums with_combination(std::span<const double> weights) const;

 private:
  std::vector<double> moments_;
  std::vector<double> gram_;  // symmetric: what lies below the diagonal is not looked at
  double squares_ = 0;
  double rows_ = 0;
};

struct Belief {
  double value = 0;
  double pull = 0;  // must be above 0: it makes every problem solvable
};

struct NonnegativeFit {
  std::vector<double> x;
  bool converged = true;  // else x is feasible, but not the best
};

NonnegativeFit nonnegative_least_squares(const GramSums& sums, std::span<const Belief> beliefs);
// The same with unknowns of any sign.
std::vector<double> least_squares(const GramSums& sums, std::span<const Belief> beliefs);

// The inverse of A'A + diag(pull), row by row: times the noise's variance, how unsure x is.
std::vector<double> posterior_inverse(const GramSums& sums, std::span<const Belief> beliefs);

}  // namespace joulemap::statistics
