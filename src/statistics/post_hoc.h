// SPDX-License-Identifier: Apache-2.0
//
// Post-hoc tests: which of k treatments differ, after an omnibus test found a difference. They compare all pairs by the
// ranks of the omnibus test. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace joulemap::statistics {

struct PairComparison {
  std::size_t first_group = 0;
  std::size_t second_group = 0;     // first < second
  double mean_rank_difference = 0;  // first - second
  double p = 1;
};

// Dunn's test after Kruskal-Wallis: normal approximation, corrected for ties, two-sided. The p-values are NOT adjusted
// for the number of pairs: pass them to adjusted_p_values() (adjustment.h). Omits groups without values.
std::vector<PairComparison> dunn_test(std::span<const std::vector<double>> groups);

// Nemenyi's test after Friedman: blocks[b][i] is the value of treatment i in block b. Uses the distribution of the
// range of k normal values, which accounts for the number of pairs: these p-values need no adjustment.
std::vector<PairComparison> nemenyi_test(std::span<const std::vector<double>> blocks);

// Probability that the range of k standard normal values exceeds q.
double studentized_range_tail(double range_threshold, std::size_t k);

}  // namespace joulemap::statistics
