// SPDX-License-Identifier: Apache-2.0
#include "statistics/linear_mixed_model.h"

#include <Eigen/Dense>
#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/check.h"
#include "statistics/ranks.h"

namespace joulemap::statistics {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// A column whose part that is independent of earlier columns is shorter than this fraction of it is redundant.
constexpr double kMinIndependentFraction = 1e-8;
// Residuals below this fraction of the values' spread are rounding errors.
constexpr double kRelativeRoundingError = 1e-10;
// Aligned values that differ by less than this fraction of the largest are equal.
constexpr double kTieTolerance = 1e-10;

Eigen::Index to_eigen_index(std::size_t i) { return static_cast<Eigen::Index>(i); }

std::vector<std::vector<std::size_t>> find_levels_with_values(const FactorialData& data) {
  std::vector<std::set<std::size_t>> level_sets(data.levels.empty() ? 0 : data.levels.front().size());
  for (const std::vector<std::size_t>& levels : data.levels) {
    for (std::size_t factor = 0; factor < levels.size(); ++factor) level_sets[factor].insert(levels[factor]);
  }
  std::vector<std::vector<std::size_t>> levels_by_factor;
  levels_by_factor.reserve(level_sets.size());
  for (const std::set<std::size_t>& levels : level_sets) levels_by_factor.emplace_back(levels.begin(), levels.end());
  return levels_by_factor;
}

// Sum contrast of a level: 1 for the level of the contrast, -1 for the last level, otherwise 0.
double sum_contrast(std::span<const std::size_t> levels, std::size_t level, std::size_t contrast) {
  if (level == levels.back()) return -1;
  return levels[contrast] == level ? 1 : 0;
}

std::vector<ModelColumn> make_model_columns(std::span<const ModelTerm> terms,
                                            const std::vector<std::vector<std::size_t>>& levels) {
  std::vector<ModelColumn> columns{{std::nullopt, {}}};
  for (std::size_t term = 0; term < terms.size(); ++term) {
    std::vector<std::vector<std::size_t>> products{{}};
    for (const std::size_t factor : terms[term]) {
      std::vector<std::vector<std::size_t>> extended_products;
      for (const std::vector<std::size_t>& product : products) {
        for (std::size_t i = 0; i + 1 < levels[factor].size(); ++i) {
          extended_products.push_back(product);
          extended_products.back().push_back(i);
        }
      }
      products = std::move(extended_products);
    }
    for (std::vector<std::size_t>& product : products) columns.push_back({term, std::move(product)});
  }
  return columns;
}

double evaluate_model_column(const FactorialFit& fit, const ModelColumn& column, std::span<const std::size_t> levels) {
  double value = 1;
  for (std::size_t i = 0; i < column.contrasts.size(); ++i) {
    const std::size_t factor = fit.terms[*column.term][i];
    value *= sum_contrast(fit.levels[factor], levels[factor], column.contrasts[i]);
  }
  return value;
}

// Indices of the columns that are linearly independent of all earlier ones (Gram-Schmidt, twice for accuracy).
std::vector<std::size_t> find_independent_columns(const MatrixXd& matrix) {
  MatrixXd basis(matrix.rows(), std::min(matrix.rows(), matrix.cols()));
  std::vector<std::size_t> independent_columns;
  for (Eigen::Index column = 0; column < matrix.cols() && to_eigen_index(independent_columns.size()) < matrix.rows();
       ++column) {
    VectorXd residual = matrix.col(column);
    const double size = residual.norm();
    const auto previous_basis = basis.leftCols(to_eigen_index(independent_columns.size()));
    for (int pass = 0; pass < 2; ++pass) residual -= previous_basis * (previous_basis.transpose() * residual);
    if (!(residual.norm() > kMinIndependentFraction * size)) continue;
    basis.col(to_eigen_index(independent_columns.size())) = residual.normalized();
    independent_columns.push_back(static_cast<std::size_t>(column));
  }
  return independent_columns;
}

// Index of the block of each value, from 0; empty if there are fewer than two blocks.
std::vector<std::size_t> assign_block_indices(const FactorialData& data) {
  std::map<std::size_t, std::size_t> index_by_block;
  for (const std::size_t block : data.blocks) index_by_block.emplace(block, index_by_block.size());
  if (index_by_block.size() < 2) return {};
  std::vector<std::size_t> indices;
  for (const std::size_t block : data.blocks) indices.push_back(index_by_block.at(block));
  return indices;
}

std::size_t design_rank_with_blocks(const MatrixXd& x, std::span<const std::size_t> blocks) {
  if (blocks.empty()) return static_cast<std::size_t>(x.cols());
  const std::size_t count = 1 + *std::ranges::max_element(blocks);
  MatrixXd augmented_design = MatrixXd::Zero(x.rows(), x.cols() + to_eigen_index(count));
  augmented_design.leftCols(x.cols()) = x;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    augmented_design(to_eigen_index(i), x.cols() + to_eigen_index(blocks[i])) = 1;
  return find_independent_columns(augmented_design).size();
}

// Sums from which a fit with any variance of blocks follows, without another pass over the values. `y` are residuals of
// ordinary least squares, so that the sums of squares do not cancel.
struct CrossProducts {
  MatrixXd xx;
  VectorXd xy;
  double yy = 0;
  std::vector<double> block_sizes;
  MatrixXd block_x;  // column sums of x, one row per block
  VectorXd block_y;
};

CrossProducts compute_cross_products(const MatrixXd& x, const VectorXd& y, std::span<const std::size_t> blocks) {
  CrossProducts sums{x.transpose() * x, x.transpose() * y, y.squaredNorm(), {}, {}, {}};
  if (blocks.empty()) return sums;
  const std::size_t count = 1 + *std::ranges::max_element(blocks);
  sums.block_sizes.assign(count, 0);
  sums.block_x = MatrixXd::Zero(to_eigen_index(count), x.cols());
  sums.block_y = VectorXd::Zero(to_eigen_index(count));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    sums.block_sizes[blocks[i]] += 1;
    sums.block_x.row(to_eigen_index(blocks[i])) += x.row(to_eigen_index(i));
    sums.block_y[to_eigen_index(blocks[i])] += y[to_eigen_index(i)];
  }
  return sums;
}

// Generalized least squares with covariance I + ratio J within each block.
struct WeightedFit {
  Eigen::LDLT<MatrixXd> xx;  // x' V^-1 x, factored
  VectorXd coefficients;
  double residual_sum_of_squares = 0;
  double deviance = 0;  // -2 log of the restricted likelihood, without constants
};

WeightedFit fit_generalized_least_squares(const CrossProducts& sums, double ratio, double degrees_of_freedom) {
  MatrixXd xx = sums.xx;
  VectorXd xy = sums.xy;
  double yy = sums.yy;
  double log_determinant = 0;
  for (std::size_t block = 0; block < sums.block_sizes.size(); ++block) {
    const double scale = 1 + ratio * sums.block_sizes[block];
    const VectorXd row = sums.block_x.row(to_eigen_index(block)).transpose();
    const double y = sums.block_y[to_eigen_index(block)];
    xx -= ratio / scale * row * row.transpose();
    xy -= ratio / scale * y * row;
    yy -= ratio / scale * y * y;
    log_determinant += std::log(scale);
  }
  WeightedFit fit;
  fit.xx.compute(xx);
  fit.coefficients = fit.xx.solve(xy);
  fit.residual_sum_of_squares = yy - fit.coefficients.dot(xy);
  fit.deviance = log_determinant + fit.xx.vectorD().array().log().sum() +
                 degrees_of_freedom * std::log(fit.residual_sum_of_squares);
  return fit;
}

// Ratio of the variances of blocks and residuals with the greatest restricted likelihood: 0, or found by a grid and a
// search around its best point.
double find_reml_variance_ratio(const CrossProducts& sums, double degrees_of_freedom) {
  if (sums.block_sizes.empty()) return 0;
  const auto deviance = [&](double log_ratio) {
    return fit_generalized_least_squares(sums, std::exp(log_ratio), degrees_of_freedom).deviance;
  };
  constexpr double kGridStep = 2;
  constexpr int kSteps = 8;  // to either side of 0; logarithms: ratios from 1e-7 to 1e7
  double best_log_ratio = -kGridStep * kSteps;
  double min_grid_deviance = deviance(best_log_ratio);
  for (int step = 1 - kSteps; step <= kSteps; ++step) {
    const double grid_deviance = deviance(kGridStep * step);
    if (grid_deviance >= min_grid_deviance) continue;
    best_log_ratio = kGridStep * step;
    min_grid_deviance = grid_deviance;
  }
  const auto [log_ratio, min_deviance] = boost::math::tools::brent_find_minima(
      deviance, best_log_ratio - kGridStep, best_log_ratio + kGridStep, std::numeric_limits<double>::digits);
  return min_deviance < fit_generalized_least_squares(sums, 0, degrees_of_freedom).deviance ? std::exp(log_ratio) : 0;
}

// Chooses the columns of the model and returns their values.
MatrixXd make_design_matrix(const FactorialData& data, FactorialFit& fit) {
  const std::vector<ModelColumn> candidate_columns = make_model_columns(fit.terms, fit.levels);
  MatrixXd matrix(to_eigen_index(data.values.size()), to_eigen_index(candidate_columns.size()));
  for (std::size_t i = 0; i < data.values.size(); ++i) {
    for (std::size_t column_index = 0; column_index < candidate_columns.size(); ++column_index)
      matrix(to_eigen_index(i), to_eigen_index(column_index)) =
          evaluate_model_column(fit, candidate_columns[column_index], data.levels[i]);
  }
  const std::vector<std::size_t> independent_columns = find_independent_columns(matrix);
  MatrixXd x(matrix.rows(), to_eigen_index(independent_columns.size()));
  std::vector<std::size_t> dropped_column_counts(fit.terms.size());
  for (const ModelColumn& column : candidate_columns) {
    if (column.term) ++dropped_column_counts[*column.term];
  }
  for (std::size_t i = 0; i < independent_columns.size(); ++i) {
    x.col(to_eigen_index(i)) = matrix.col(to_eigen_index(independent_columns[i]));
    fit.columns.push_back(candidate_columns[independent_columns[i]]);
    if (fit.columns.back().term) --dropped_column_counts[*fit.columns.back().term];
  }
  for (const std::size_t count : dropped_column_counts) fit.has_all_contrasts.push_back(count == 0);
  return x;
}

std::vector<std::size_t> find_columns_of_term(const FactorialFit& fit, std::size_t term) {
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < fit.columns.size(); ++i) {
    if (fit.columns[i].term == term) columns.push_back(i);
  }
  return columns;
}

}  // namespace

std::vector<ModelTerm> make_comparison_terms(std::size_t factors, std::size_t factor, bool has_interactions) {
  std::vector<ModelTerm> terms;
  for (std::size_t other_factor = 0; other_factor < factors; ++other_factor) {
    if (other_factor == factor) continue;
    const std::size_t previous_term_count = terms.size();
    terms.push_back({other_factor});
    for (std::size_t i = 0; i < previous_term_count; ++i) {
      terms.push_back(terms[i]);
      terms.back().push_back(other_factor);
    }
  }
  terms.push_back({factor});
  for (std::size_t other_factor = 0; has_interactions && other_factor < factors; ++other_factor) {
    if (other_factor != factor) terms.push_back({std::min(factor, other_factor), std::max(factor, other_factor)});
  }
  return terms;
}

std::optional<FactorialFit> fit_factorial_model(const FactorialData& data, std::span<const ModelTerm> terms) {
  const std::size_t n = data.values.size();
  JOULEMAP_CHECK(data.levels.size() == n, "each value has levels");
  JOULEMAP_CHECK(data.blocks.empty() || data.blocks.size() == n, "each value has a block");
  FactorialFit fit;
  fit.terms.assign(terms.begin(), terms.end());
  fit.levels = find_levels_with_values(data);
  if (n == 0) return std::nullopt;
  const MatrixXd x = make_design_matrix(data, fit);
  const std::vector<std::size_t> blocks = assign_block_indices(data);
  const std::size_t rank = design_rank_with_blocks(x, blocks);
  if (n <= rank) return std::nullopt;
  fit.degrees_of_freedom = static_cast<double>(n - rank);

  const VectorXd y = Eigen::Map<const VectorXd>(data.values.data(), to_eigen_index(n));
  const VectorXd least_squares_coefficients = x.colPivHouseholderQr().solve(y);
  const VectorXd residuals = y - x * least_squares_coefficients;
  if (!(residuals.norm() > kRelativeRoundingError * (y.array() - y.mean()).matrix().norm())) return std::nullopt;
  const CrossProducts sums = compute_cross_products(x, residuals, blocks);
  const auto residual_degrees_of_freedom = static_cast<double>(n) - static_cast<double>(x.cols());
  const double ratio = find_reml_variance_ratio(sums, residual_degrees_of_freedom);
  const WeightedFit weighted = fit_generalized_least_squares(sums, ratio, residual_degrees_of_freedom);

  fit.residual_variance = weighted.residual_sum_of_squares / residual_degrees_of_freedom;
  fit.block_variance = ratio * fit.residual_variance;
  const VectorXd coefficients = least_squares_coefficients + weighted.coefficients;
  const MatrixXd covariance = fit.residual_variance * weighted.xx.solve(MatrixXd::Identity(x.cols(), x.cols()));
  const VectorXd fitted_values = x * coefficients;
  fit.coefficients.assign(coefficients.begin(), coefficients.end());
  fit.covariance.assign(covariance.data(), covariance.data() + covariance.size());
  fit.fitted_values.assign(fitted_values.begin(), fitted_values.end());
  for (std::size_t i = 0; i < n; ++i) fit.residuals.push_back(data.values[i] - fit.fitted_values[i]);
  return fit;
}

std::optional<FTestResult> wald_f_test(const FactorialFit& fit, std::size_t term) {
  const std::vector<std::size_t> columns = find_columns_of_term(fit, term);
  if (columns.empty()) return std::nullopt;
  const std::size_t size = columns.size();
  VectorXd effects(to_eigen_index(size));
  MatrixXd covariance(to_eigen_index(size), to_eigen_index(size));
  for (std::size_t i = 0; i < size; ++i) {
    effects[to_eigen_index(i)] = fit.coefficients[columns[i]];
    for (std::size_t j = 0; j < size; ++j)
      covariance(to_eigen_index(i), to_eigen_index(j)) = fit.covariance[columns[i] * fit.columns.size() + columns[j]];
  }
  FTestResult test;
  test.numerator_df = static_cast<double>(size);
  test.denominator_df = fit.degrees_of_freedom;
  test.f = effects.dot(covariance.ldlt().solve(effects)) / test.numerator_df;
  test.p = f_distribution_tail(test.f, test.numerator_df, test.denominator_df);
  return test;
}

std::optional<EffectEstimate> estimate_level_difference(const FactorialFit& fit, std::size_t factor,
                                                        std::size_t first_level, std::size_t second_level,
                                                        double confidence) {
  const std::vector<std::size_t>& levels = fit.levels[factor];
  for (const std::size_t level : {first_level, second_level}) {
    if (std::ranges::find(levels, level) == levels.end()) return std::nullopt;
  }
  std::vector<double> weights(fit.columns.size());
  bool is_modelled = false;
  for (std::size_t term = 0; term < fit.terms.size(); ++term) {
    if (std::ranges::find(fit.terms[term], factor) == fit.terms[term].end()) continue;
    if (!fit.has_all_contrasts[term]) return std::nullopt;
    if (fit.terms[term].size() > 1) continue;
    is_modelled = true;
    for (const std::size_t column : find_columns_of_term(fit, term)) {
      const std::size_t number = fit.columns[column].contrasts[0];
      weights[column] = sum_contrast(levels, first_level, number) - sum_contrast(levels, second_level, number);
    }
  }
  if (!is_modelled) return std::nullopt;
  double difference = 0;
  double variance = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    difference += weights[i] * fit.coefficients[i];
    for (std::size_t j = 0; j < weights.size(); ++j)
      variance += weights[i] * weights[j] * fit.covariance[i * weights.size() + j];
  }
  const double half_width = students_t_quantile((1 + confidence) / 2, fit.degrees_of_freedom) * std::sqrt(variance);
  return EffectEstimate{difference, difference - half_width, difference + half_width, confidence};
}

std::optional<FTestResult> aligned_rank_test(const FactorialData& data, const FactorialFit& fit, std::size_t term) {
  const std::vector<std::size_t> columns = find_columns_of_term(fit, term);
  FactorialData aligned_data = data;
  for (std::size_t i = 0; i < data.values.size(); ++i) {
    aligned_data.values[i] = fit.residuals[i];
    for (const std::size_t column : columns)
      aligned_data.values[i] +=
          fit.coefficients[column] * evaluate_model_column(fit, fit.columns[column], data.levels[i]);
  }
  // Values that are equal but for rounding are ties.
  double largest_magnitude = 0;
  for (const double value : aligned_data.values) largest_magnitude = std::max(largest_magnitude, std::abs(value));
  const double unit = largest_magnitude > 0 ? kTieTolerance * largest_magnitude : 1;
  for (double& value : aligned_data.values) value = std::round(value / unit);
  const Ranks ranks = midranks(aligned_data.values);
  for (std::size_t i = 0; i < data.values.size(); ++i)
    aligned_data.values[i] = static_cast<double>(ranks.doubled_ranks[i]) / 2;
  const std::optional<FactorialFit> rank_fit = fit_factorial_model(aligned_data, fit.terms);
  if (!rank_fit) return std::nullopt;
  return wald_f_test(*rank_fit, term);
}

}  // namespace joulemap::statistics
