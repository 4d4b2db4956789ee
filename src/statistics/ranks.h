// SPDX-License-Identifier: Apache-2.0
//
// Ranks of values, and what the rank tests say. Values that are equal to the last bit are tied and share the mean of
// their places (midranks); midranks are halves, so they are kept doubled, as integers: sums of them are exact,
// whatever the order. Values must be finite: who calls has set aside what is not, and has said so. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace joulemap::statistics {

struct Ranks {
  std::vector<std::int64_t> doubled;   // 2 x midrank of each value, in the order of the values: 2 for the least of all
  std::vector<std::size_t> tie_sizes;  // how many values share each rank, from the lowest; ones where nothing is tied
  std::vector<std::size_t> order;      // indices of the values, from the least to the greatest
  double tie_cubes() const;            // sum of t^3 - t over ties, which all corrections for ties are made of
  bool tied() const { return tie_sizes.size() < doubled.size(); }
};

Ranks midranks(std::span<const double> values);

// How a p-value was found.
enum class PMethod {
  exact,        // all arrangements that could have been, counted
  normal,       // normal approximation
  chi_squared,  // approximation by the chi-squared distribution
  students_t,   // approximation by Student's t
  permutation,  // some arrangements, drawn at random
};
std::string_view name_of(PMethod method);  // "exact", "normal", "chi-squared", "Student's t", "permutation"

// What a test says. All p-values are two-sided: how often chance alone gives a statistic at least this far from where
// chance puts it on average. Where nothing can be told (no values, nothing but zero differences, all values equal) p
// is 1.
struct TestResult {
  double statistic = 0;
  double p = 1;
  std::size_t n = 0;  // how many values (pairs, blocks) the statistic was made of
  PMethod method = PMethod::exact;
};

// Of a standard normal: at least |z| on either side. From the complement's own function, so that small ones are right.
double two_sided_normal_p(double z);
// Of a standard normal: quantile, for 0 < p < 1.
double normal_quantile(double p);
double normal_cdf(double z);
// At least x, of chi-squared.
double chi_squared_tail(double x, double degrees_of_freedom);
// At least |t| on either side, of Student's t.
double two_sided_t_p(double t, double degrees_of_freedom);

}  // namespace joulemap::statistics
