// SPDX-License-Identifier: Apache-2.0
//
// Null distributions of rank sums, as counts: the basis of exact p-values, exact intervals and simulated power. Counts
// are doubles: exact integers up to 2^53, beyond that accurate to a relative 1e-13, because sums of doubles have only
// positive terms. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace joulemap::statistics {

// Up to this number of nonzero differences the signed-rank test is exact; beyond it uses the normal approximation with
// continuity correction.
inline constexpr std::size_t kMaxExactSignedRankSize = 200;
// The rank-sum test is exact while n1 * n2 * min(n1, n2) * (n1 + n2) is at most this (up to n1 = n2 = 56); beyond it
// uses the normal approximation.
inline constexpr double kMaxExactRankSumWork = 2e7;
bool is_rank_sum_exact(std::size_t n1, std::size_t n2);

// Number of sign assignments whose positive ranks sum to s, for s = 0 .. max_sum. Ranks may be in any integer unit, such
// as halves.
std::vector<double> count_signed_rank_sums(std::span<const std::int64_t> ranks, std::size_t max_sum);

// Number of ways to choose n1 of n1 + n2 values with a doubled U of 0, 1, ... 2 n1 n2. tie_sizes: see Ranks.
std::vector<double> count_tied_rank_sums(std::span<const std::size_t> tie_sizes, std::size_t n1);
// The same without ties, for U = 0 .. max_sum.
std::vector<double> count_rank_sums(std::size_t n1, std::size_t n2, std::size_t max_sum);
// Number of ways to choose n1 of n.
double binomial_coefficient(std::size_t n, std::size_t n1);

// A critical rank sum W+ or U, for values without ties: the probability of a sum of at most `critical_sum` is
// `tail_probability`.
struct CriticalValue {
  std::size_t critical_sum = 0;
  double tail_probability = 0;
};
// The largest sum whose tail is at most the given one-sided `tail_probability`; nothing where even a sum of 0 is more
// likely. The distribution is given as counts of the sums 0, 1, ... out of `total`, as a normal approximation, or by
// the test; the tests are exact within the limits above.
std::optional<CriticalValue> critical_value(std::span<const double> counts, double total, double tail_probability);
std::optional<CriticalValue> normal_critical_value(double mean, double variance, double tail_probability);
std::optional<CriticalValue> signed_rank_critical_value(std::size_t n, double tail_probability);
std::optional<CriticalValue> rank_sum_critical_value(std::size_t n1, std::size_t n2, double tail_probability);

// Normal approximation of the probability that an integer sum is at most `critical_sum`, with continuity correction.
double normal_lower_tail(double sum, double mean, double variance);

}  // namespace joulemap::statistics
