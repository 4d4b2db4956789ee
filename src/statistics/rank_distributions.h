// SPDX-License-Identifier: Apache-2.0
//
// How often chance alone gives each rank sum: the counts that exact p-values, exact intervals and simulated power are
// made of. Counts are doubles: exact integers up to 2^53, beyond that right to 1e-13 of themselves, since only
// positive numbers are ever added up. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace joulemap::statistics {

// Beyond this many differences that are not zero the signed-rank test is approximated (normal, continuity corrected).
inline constexpr std::size_t kExactSignedRankLimit = 200;
// The same for the rank-sum test: exact while n1 n2 min(n1, n2) (n1 + n2) is not above this, as for 50 against 50.
inline constexpr double kExactRankSumWork = 2e7;
bool rank_sum_is_exact(std::size_t n1, std::size_t n2);

// How many of all sets of signs give a sum of s of the ranks with a plus, for s = 0 .. up_to. Ranks in any unit.
std::vector<double> signed_rank_counts(std::span<const std::int64_t> ranks, std::size_t up_to);

// How many of the ways to choose n1 of tied values give a doubled U of 0, 1, ... 2 n1 n2. tie_sizes: see Ranks.
std::vector<double> tied_rank_sum_counts(std::span<const std::size_t> tie_sizes, std::size_t n1);
// The same without ties, of U = 0 .. up_to.
std::vector<double> rank_sum_counts(std::size_t n1, std::size_t n2, std::size_t up_to);
// All ways to choose n1 of n.
double ways_to_choose(std::size_t n, std::size_t n1);

// A sum of ranks (or U) that is rare: at most this much happens, without ties, with a chance of `tail`.
struct RareSum {
  std::size_t sum = 0;
  double tail = 0;
};
// The greatest sum whose tail is at most the given one; nothing where even 0 is more likely than that. Exact within
// the limits above.
std::optional<RareSum> rare_signed_rank(std::size_t n, double tail);
std::optional<RareSum> rare_rank_sum(std::size_t n1, std::size_t n2, double tail);

// Of sums that only take whole numbers: the normal approximation's chance of at most `sum`, with continuity correction.
double normal_tail_at_most(double sum, double mean, double variance);

}  // namespace joulemap::statistics
