// SPDX-License-Identifier: Apache-2.0
//
// Rank tests for differences between two or more treatments. None assumes a normal distribution. Exact p-values are
// conditional on the ties and zeros present: they count all sign assignments (pairs) or all assignments of values to
// groups. Tails are sums of positive counts, never 1 - cdf. Counts are doubles: exact integers up to 2^53, beyond that
// accurate to a relative 1e-13. Pure; any thread. Conventions, and the programs that the tests compare with:
// docs/explanation/statistics.md.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "statistics/rank_distributions.h"
#include "statistics/ranks.h"

namespace joulemap::statistics {

// first - second for each pair.
std::vector<double> paired_differences(std::span<const double> first_values, std::span<const double> second_values);

// Treatment of pairs whose difference is 0.
enum class ZeroDifferences {
  drop,   // Wilcoxon: removed before ranking
  pratt,  // ranked with the other differences, then removed: many zeros make p larger
};

// Wilcoxon's signed-rank test of pairs, first minus second; the spans must have equal length. statistic: W+, the sum of
// the ranks of positive differences. n: number of nonzero differences.
TestResult signed_rank_test(std::span<const double> first_values, std::span<const double> second_values,
                            ZeroDifferences zeros = ZeroDifferences::pratt);
// The same test for given differences.
TestResult signed_rank_test(std::span<const double> differences, ZeroDifferences zeros = ZeroDifferences::pratt);

// Mann-Whitney test (Wilcoxon's rank-sum test) of two independent groups. statistic: U, the number of pairs in which
// the value of the first group is greater, with ties counted as half. Two-sided as in R's coin: counts all U at least
// as far from n1 n2 / 2 as the observed one, on either side. Without ties this equals twice the smaller tail; with ties
// and unequal groups it may differ. n: n1 + n2.
TestResult rank_sum_test(std::span<const double> first_values, std::span<const double> second_values);

// The statistics of both tests without p: W+ of pairs, with zero differences dropped, and U.
double signed_rank_sum(std::span<const double> first_values, std::span<const double> second_values);
double rank_sum_u(std::span<const double> first_values, std::span<const double> second_values);

// Friedman's test: do k treatments differ, within blocks? blocks[b][i]: value of treatment i in block b; all blocks
// have k values. statistic: chi-squared with k - 1 degrees of freedom, corrected for ties. n: number of blocks. p = 1
// for k < 2, without blocks, or if all values of each block are tied.
TestResult friedman_test(std::span<const std::vector<double>> blocks);

// Kruskal-Wallis test: do k independent groups differ? statistic: H, corrected for ties, chi-squared with k - 1 degrees
// of freedom; groups without values do not count. n: number of all values.
TestResult kruskal_wallis_test(std::span<const std::vector<double>> groups);

}  // namespace joulemap::statistics
