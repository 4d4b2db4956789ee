// SPDX-License-Identifier: Apache-2.0
#include "statistics/mean_interval.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace joulemap::statistics {

std::optional<MeanInterval> mean_interval(std::span<const double> values, double confidence) {
  if (values.empty()) return std::nullopt;
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  MeanInterval result{sum / n, std::nullopt};
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  // mean +- t(n - 1, (1 + confidence) / 2) x s / sqrt(n)
  const double standard_error = std::sqrt(squares / (n - 1) / n);
  const boost::math::students_t distribution(n - 1);
  result.half_width = boost::math::quantile(distribution, 0.5 * (1 + confidence)) * standard_error;
  return result;
}

}  // namespace joulemap::statistics
