// SPDX-License-Identifier: Apache-2.0
//
// Which of k ways differ, after a test has said that some do: all pairs of them, by the ranks that the test was made
// of. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace joulemap::statistics {

struct PairComparison {
  std::size_t first = 0;
  std::size_t second = 0;           // first < second
  double mean_rank_difference = 0;  // first - second
  double p = 1;
};

// Dunn's test after Kruskal and Wallis's: normal, corrected for ties, two-sided, NOT adjusted for the number of
// pairs: hand the p to adjusted() (adjustment.h). Groups without values are left out.
std::vector<PairComparison> dunn_test(std::span<const std::vector<double>> groups);

// Nemenyi's test after Friedman's: blocks[b][i] is what way i gave in block b. By the range of k normal values, which
// accounts for the number of pairs: these p need no adjustment.
std::vector<PairComparison> nemenyi_test(std::span<const std::vector<double>> blocks);

// How often the greatest and the least of k standard normal values are more than q apart.
double normal_range_tail(double q, std::size_t k);

}  // namespace joulemap::statistics
