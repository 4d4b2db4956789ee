// SPDX-License-Identifier: Apache-2.0
#include "statistics/run_variation.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace joulemap::statistics {
namespace {

constexpr double kMaxShareOfB = 0.99;

double mean_of_runs(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Sums over one group of runs, relative to the squared mean: squared standard deviations within runs, and squared
// deviations of runs from the mean. All 0 if the mean is not above 0.
struct RelativeSquares {
  double within = 0;
  double between = 0;
  std::size_t runs = 0;
};

RelativeSquares relative_squares(const RunGroup& group, double mean) {
  RelativeSquares squares;
  if (mean <= 0) return squares;
  squares.runs = group.values.size();
  for (std::size_t i = 0; i < group.values.size(); ++i) {
    const double deviation = group.values[i] / mean - 1;
    const double own = group.within_sd[i] / mean;
    squares.between += deviation * deviation;
    squares.within += own * own;
  }
  return squares;
}

double of_mean(double relative_sd, double mean, std::size_t runs) {
  return relative_sd * mean / std::sqrt(static_cast<double>(std::max<std::size_t>(runs, 1)));
}

}  // namespace

double RunContrast::standard_error() const {
  return std::sqrt(standard_error_a * standard_error_a + standard_error_b * standard_error_b);
}

RunContrast contrast_of(const RunGroup& a, const RunGroup& b, const VariationPrior& prior) {
  RunContrast contrast{.mean_a = mean_of_runs(a.values), .mean_b = mean_of_runs(b.values)};
  const RelativeSquares of_a = relative_squares(a, contrast.mean_a);
  const RelativeSquares of_b = relative_squares(b, contrast.mean_b);
  const std::size_t runs = std::max<std::size_t>(of_a.runs + of_b.runs, 1);
  const double repeated =
      static_cast<double>(of_a.runs > 1 ? of_a.runs - 1 : 0) + static_cast<double>(of_b.runs > 1 ? of_b.runs - 1 : 0);
  // The variance between repetitions includes the variance within each of them, so its prior includes both, too.
  const double expected =
      prior.relative_sd * prior.relative_sd + (of_a.within + of_b.within) / static_cast<double>(runs);
  contrast.degrees_of_freedom = prior.degrees_of_freedom + repeated;
  contrast.relative_sd =
      std::sqrt((prior.degrees_of_freedom * expected + of_a.between + of_b.between) / contrast.degrees_of_freedom);
  contrast.standard_error_a = of_mean(contrast.relative_sd, contrast.mean_a, a.values.size());
  contrast.standard_error_b = of_mean(contrast.relative_sd, contrast.mean_b, b.values.size());
  return contrast;
}

double t_quantile(double level, double degrees_of_freedom) {
  const boost::math::students_t distribution(degrees_of_freedom);
  return boost::math::quantile(boost::math::complement(distribution, 0.5 * (1 - level)));
}

double t_probability(double ratio, double degrees_of_freedom) {
  const boost::math::students_t distribution(degrees_of_freedom);
  return 2 * boost::math::cdf(boost::math::complement(distribution, std::abs(ratio)));
}

double smallest_detectable_change(double relative_sd, double degrees_of_freedom, std::size_t runs_a, std::size_t runs_b,
                                  double level, double power) {
  const boost::math::students_t distribution(degrees_of_freedom);
  const double reach =
      (t_quantile(level, degrees_of_freedom) + boost::math::quantile(distribution, power)) * relative_sd;
  const double of_a = reach * reach / static_cast<double>(runs_a);
  // Solves c^2 = of_a + of_b (1 + c)^2: if the mean of b is larger by the factor 1 + c, so is its standard deviation.
  // For of_b >= 1 there is no solution. The limit kMaxShareOfB then gives a change of about 200 times, which no result
  // exceeds.
  const double of_b = std::min(reach * reach / static_cast<double>(runs_b), kMaxShareOfB);
  return (of_b + std::sqrt(of_b * of_b + (1 - of_b) * (of_a + of_b))) / (1 - of_b);
}

}  // namespace joulemap::statistics
