// SPDX-License-Identifier: Apache-2.0
#include "statistics/ranks.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace joulemap::statistics {

Ranks midranks(std::span<const double> values) {
  Ranks ranks;
  ranks.doubled_ranks.resize(values.size());
  ranks.sorted_order.resize(values.size());
  std::iota(ranks.sorted_order.begin(), ranks.sorted_order.end(), std::size_t{0});
  std::ranges::sort(ranks.sorted_order, {}, [&](std::size_t i) { return values[i]; });
  for (std::size_t begin = 0; begin < values.size();) {
    std::size_t end = begin + 1;
    while (end < values.size() && values[ranks.sorted_order[end]] == values[ranks.sorted_order[begin]]) ++end;
    // Ranks begin + 1 .. end, whose mean is (begin + 1 + end) / 2.
    for (std::size_t i = begin; i < end; ++i)
      ranks.doubled_ranks[ranks.sorted_order[i]] = static_cast<std::int64_t>(begin + 1 + end);
    ranks.tie_sizes.push_back(end - begin);
    begin = end;
  }
  return ranks;
}

double Ranks::tie_correction() const {
  double sum = 0;
  for (const std::size_t size : tie_sizes) {
    const auto t = static_cast<double>(size);
    sum += t * t * t - t;
  }
  return sum;
}

std::string_view p_value_method_name(PValueMethod method) {
  switch (method) {
    case PValueMethod::exact:
      return "exact";
    case PValueMethod::normal:
      return "normal";
    case PValueMethod::chi_squared:
      return "chi-squared";
    case PValueMethod::students_t:
      return "Student's t";
    case PValueMethod::permutation:
      return "permutation";
    case PValueMethod::f:
      return "F";
  }
  return "";
}

double two_sided_normal_p(double z) { return std::erfc(std::abs(z) * M_SQRT1_2); }

double normal_quantile(double p) { return boost::math::quantile(boost::math::normal(), p); }

double normal_cdf(double z) { return 0.5 * std::erfc(-z * M_SQRT1_2); }

double chi_squared_tail(double x, double degrees_of_freedom) {
  if (x <= 0 || degrees_of_freedom <= 0) return 1;
  return boost::math::cdf(boost::math::complement(boost::math::chi_squared(degrees_of_freedom), x));
}

double two_sided_t_p(double t, double degrees_of_freedom) {
  if (std::isinf(t)) return 0;
  const boost::math::students_t distribution(degrees_of_freedom);
  return std::min(1.0, 2 * boost::math::cdf(boost::math::complement(distribution, std::abs(t))));
}

double students_t_quantile(double p, double degrees_of_freedom) {
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), p);
}

double f_distribution_tail(double f_statistic, double numerator_degrees_of_freedom,
                           double denominator_degrees_of_freedom) {
  if (!(f_statistic > 0)) return 1;
  if (std::isinf(f_statistic)) return 0;
  const boost::math::fisher_f distribution(numerator_degrees_of_freedom, denominator_degrees_of_freedom);
  return boost::math::cdf(boost::math::complement(distribution, f_statistic));
}

}  // namespace joulemap::statistics
