// SPDX-License-Identifier: Apache-2.0
//
// Rank tests for differences between two or more treatments. None assumes a normal distribution. Exact p-values are
// conditional on the ties and zeros present: all signs (pairs) or all assignments of values to groups are counted, by
// dynamic programming over doubled midranks. Only positive counts are added, never 1 - cdf. Counts are doubles: exact
// integers up to 2^53, beyond that accurate to a relative 1e-13. Pure; any thread. Conventions and oracles:
// docs/statistics.md.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "statistics/rank_distributions.h"
#include "statistics/ranks.h"

namespace joulemap::statistics {

// Treatment of pairs without a difference.
enum class ZeroDifferences {
  drop,   // Wilcoxon: removed before ranking
  pratt,  // ranked with the others, then removed: many of them make p larger
};

// Wilcoxon's signed-rank test of pairs, first minus second; the spans must have equal length. statistic: W+, the sum of
// the ranks of positive differences. n: number of nonzero differences.
TestResult signed_rank_test(std::span<const double> first, std::span<const double> second,
                            ZeroDifferences zeros = ZeroDifferences::pratt);
// The same for differences.
TestResult signed_rank_test(std::span<const double> differences, ZeroDifferences zeros = ZeroDifferences::pratt);

// Mann-Whitney test (Wilcoxon's rank-sum test) of two independent groups. statistic: U of the first: pairs in which it
// is greater, with ties counted as half. Two-sided as in R's coin: all U at least as far from n1 n2 / 2 as this one, on
// either side. (Without ties this is the doubled smaller tail; with ties and unequal groups it may not be.) n: n1 + n2.
TestResult rank_sum_test(std::span<const double> first, std::span<const double> second);

// The statistics without their p: W+ of pairs without zero differences, and U.
double signed_rank_sum(std::span<const double> first, std::span<const double> second);
double rank_sum_u(std::span<const double> first, std::span<const double> second);

// Friedman's test: do k treatments differ, within blocks? blocks[b][i]: value of treatment i in block b; all blocks
// have k values. statistic: chi-squared with k - 1 degrees of freedom, corrected for ties. n: number of blocks. p = 1
// for k < 2 or without blocks.
TestResult friedman_test(std::span<const std::vector<double>> blocks);

// Kruskal-Wallis test: do k independent groups differ? statistic: H, corrected for ties, chi-squared with k - 1 degrees
// of freedom over the groups that have values. n: number of all values.
TestResult kruskal_wallis_test(std::span<const std::vector<double>> groups);

}  // namespace joulemap::statistics
