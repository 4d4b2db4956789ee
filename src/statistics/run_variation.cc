// SPDX-License-Identifier: Apache-2.0
#include "statistics/run_variation.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace joulemap::statistics {
namespace {

constexpr double kMaxGroupBRelativeVariance = 0.99;

double mean_of_runs(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Sums over one group of runs, relative to the squared mean: squared standard deviations within runs, and squared
// deviations of runs from the mean. All 0 if the mean is not above 0.
struct RelativeSumsOfSquares {
  double within_runs = 0;
  double between_runs = 0;
  std::size_t run_count = 0;
};

RelativeSumsOfSquares compute_relative_sums_of_squares(const RunGroup& group, double mean) {
  RelativeSumsOfSquares squares;
  if (mean <= 0) return squares;
  squares.run_count = group.run_means.size();
  for (std::size_t i = 0; i < group.run_means.size(); ++i) {
    const double deviation = group.run_means[i] / mean - 1;
    const double relative_within_sd = group.within_run_sds[i] / mean;
    squares.between_runs += deviation * deviation;
    squares.within_runs += relative_within_sd * relative_within_sd;
  }
  return squares;
}

double standard_error_of_mean(double relative_sd, double mean, std::size_t runs) {
  return relative_sd * mean / std::sqrt(static_cast<double>(std::max<std::size_t>(runs, 1)));
}

}  // namespace

double RunContrast::standard_error() const {
  return std::sqrt(standard_error_a * standard_error_a + standard_error_b * standard_error_b);
}

RunContrast contrast_runs(const RunGroup& group_a, const RunGroup& group_b, const VariationPrior& prior) {
  RunContrast contrast{.mean_a = mean_of_runs(group_a.run_means), .mean_b = mean_of_runs(group_b.run_means)};
  const RelativeSumsOfSquares squares_a = compute_relative_sums_of_squares(group_a, contrast.mean_a);
  const RelativeSumsOfSquares squares_b = compute_relative_sums_of_squares(group_b, contrast.mean_b);
  const std::size_t runs = std::max<std::size_t>(squares_a.run_count + squares_b.run_count, 1);
  const double repetition_count = static_cast<double>(squares_a.run_count > 1 ? squares_a.run_count - 1 : 0) +
                                  static_cast<double>(squares_b.run_count > 1 ? squares_b.run_count - 1 : 0);
  // The variance between repetitions includes the variance within each of them, so its prior includes both, too.
  const double expected = prior.relative_sd * prior.relative_sd +
                          (squares_a.within_runs + squares_b.within_runs) / static_cast<double>(runs);
  contrast.degrees_of_freedom = prior.degrees_of_freedom + repetition_count;
  contrast.relative_sd =
      std::sqrt((prior.degrees_of_freedom * expected + squares_a.between_runs + squares_b.between_runs) /
                contrast.degrees_of_freedom);
  contrast.standard_error_a = standard_error_of_mean(contrast.relative_sd, contrast.mean_a, group_a.run_means.size());
  contrast.standard_error_b = standard_error_of_mean(contrast.relative_sd, contrast.mean_b, group_b.run_means.size());
  return contrast;
}

double two_sided_t_quantile(double level, double degrees_of_freedom) {
  const boost::math::students_t distribution(degrees_of_freedom);
  return boost::math::quantile(boost::math::complement(distribution, 0.5 * (1 - level)));
}

double p_value_of_t_ratio(double ratio, double degrees_of_freedom) {
  const boost::math::students_t distribution(degrees_of_freedom);
  return 2 * boost::math::cdf(boost::math::complement(distribution, std::abs(ratio)));
}

double smallest_detectable_change(double relative_sd, double degrees_of_freedom, std::size_t runs_a, std::size_t runs_b,
                                  double level, double power) {
  const boost::math::students_t distribution(degrees_of_freedom);
  const double detectable_distance =
      (two_sided_t_quantile(level, degrees_of_freedom) + boost::math::quantile(distribution, power)) * relative_sd;
  const double relative_variance_a = detectable_distance * detectable_distance / static_cast<double>(runs_a);
  // Solves c^2 = relative_variance_a + relative_variance_b (1 + c)^2: if the mean of b is larger by the factor 1 + c,
  // so is its standard deviation. For relative_variance_b >= 1 there is no solution. The limit
  // kMaxGroupBRelativeVariance then gives a change of about 200 times, which no result exceeds.
  const double relative_variance_b =
      std::min(detectable_distance * detectable_distance / static_cast<double>(runs_b), kMaxGroupBRelativeVariance);
  return (relative_variance_b + std::sqrt(relative_variance_b * relative_variance_b +
                                          (1 - relative_variance_b) * (relative_variance_a + relative_variance_b))) /
         (1 - relative_variance_b);
}

}  // namespace joulemap::statistics
