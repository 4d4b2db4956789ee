// SPDX-License-Identifier: Apache-2.0
//
// Ranks of values, and the result type of the rank tests. Values that are equal to the last bit are tied and share the
// mean of their ranks (midranks). Midranks are multiples of a half, so they are stored doubled, as integers: their sums
// are exact in any order. Values must be finite: the caller removes and reports others. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace joulemap::statistics {

struct Ranks {
  std::vector<std::int64_t> doubled_ranks;  // 2 x midrank of each value, in the order of the values; ranks begin at 1
  std::vector<std::size_t> tie_sizes;       // number of values at each rank, from the lowest; 1 for an untied value
  std::vector<std::size_t> sorted_order;    // indices of the values, from the smallest to the largest
  double tie_correction() const;            // sum of t^3 - t over ties of t values, the term of all tie corrections
  bool has_ties() const { return tie_sizes.size() < doubled_ranks.size(); }
};

Ranks midranks(std::span<const double> values);

// How a p-value was computed.
enum class PValueMethod {
  exact,        // all possible arrangements counted
  normal,       // normal approximation
  chi_squared,  // approximation by the chi-squared distribution
  students_t,   // approximation by Student's t
  permutation,  // a random sample of arrangements
  f,            // the F distribution
};
std::string_view p_value_method_name(
    PValueMethod method);  // "exact", "normal", "chi-squared", "Student's t", "permutation", "F"

// Result of a test. All p-values are two-sided: the probability under the null hypothesis of a statistic at least this
// far from its expectation. p is 1 where no test is possible (no values, only zero differences, all values equal).
struct TestResult {
  double statistic = 0;
  double p = 1;
  std::size_t n = 0;  // number of values (pairs, blocks) in the statistic
  PValueMethod p_value_method = PValueMethod::exact;
};

// Probability that the absolute value of a standard normal is at least |z|. Uses erfc, so that small values are
// accurate.
double two_sided_normal_p(double z);
// Quantile of a standard normal, for 0 < p < 1.
double normal_quantile(double p);
double normal_cdf(double z);
// Probability that a chi-squared value is at least x.
double chi_squared_tail(double x, double degrees_of_freedom);
// Probability that the absolute value of Student's t is at least |t|.
double two_sided_t_p(double t, double degrees_of_freedom);
// Quantile of Student's t, for 0 < p < 1.
double students_t_quantile(double p, double degrees_of_freedom);
// Probability that a value of the F distribution is at least f.
double f_distribution_tail(double f_statistic, double numerator_degrees_of_freedom,
                           double denominator_degrees_of_freedom);

}  // namespace joulemap::statistics
