// SPDX-License-Identifier: Apache-2.0
//
// Tests that ask of values only which is greater: whether two or more ways to run differ. None needs a normal spread.
// Exact p-values are conditional on the ties and zeros that are there: all signs (pairs) or all ways to deal the
// values out to the groups are counted, by dynamic programming over doubled midranks; only positive counts are added
// up, never 1 - cdf. Counts are doubles: exact integers up to 2^53, beyond that right to 1e-13 of themselves. Pure;
// any thread. Conventions and oracles: docs/statistics.md.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "statistics/rank_distributions.h"
#include "statistics/ranks.h"

namespace joulemap::statistics {

// What becomes of pairs without a difference.
enum class Zeros {
  drop,   // Wilcoxon: they are left out before ranking
  pratt,  // they are ranked with the others, and then left out: many of them make p greater
};

// Wilcoxon's signed-rank test of pairs, first minus second; the spans must be of one length. statistic: W+, the sum
// of the ranks of positive differences. n: differences that are not zero.
TestResult signed_rank_test(std::span<const double> first, std::span<const double> second, Zeros zeros = Zeros::pratt);
// The same of differences.
TestResult signed_rank_test(std::span<const double> differences, Zeros zeros = Zeros::pratt);

// Mann and Whitney's test (Wilcoxon's rank-sum test) of two independent groups. statistic: U of the first: pairs in
// which it is greater, ties by half. Two-sided as R's coin has it: all U at least as far from n1 n2 / 2 as this one,
// on either side. (Without ties this is the doubled smaller tail; with ties and unequal groups it may not be.) n: n1
// + n2.
TestResult rank_sum_test(std::span<const double> first, std::span<const double> second);

// The statistics alone, without their p: W+ of pairs without zero differences, and U.
double signed_rank_sum(std::span<const double> first, std::span<const double> second);
double rank_sum_u(std::span<const double> first, std::span<const double> second);

// Friedman's test: do k ways differ, within blocks? blocks[b][i]: what way i gave in block b; all blocks have k
// values. statistic: chi-squared with k - 1 degrees of freedom, corrected for ties. n: blocks. Nothing to tell (p =
// 1): k < 2, no blocks.
TestResult friedman_test(std::span<const std::vector<double>> blocks);

// Kruskal and Wallis's test: do k independent groups differ? statistic: H, corrected for ties, chi-squared with k - 1
// degrees of freedom over the groups that have values. n: all values.
TestResult kruskal_wallis_test(std::span<const std::vector<double>> groups);

}  // namespace joulemap::statistics
