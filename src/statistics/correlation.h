// SPDX-License-Identifier: Apache-2.0
//
// Rank correlations of two quantities, such as energy and time: 1 where both always rise together, -1 where one falls
// as the other rises, whatever the shape of the curve. The spans must have equal length. spearman() and kendall()
// return nothing where one side has no spread, because the coefficient is undefined. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "statistics/ranks.h"

namespace joulemap::statistics {

// p of spearman(): exact (all permutations, also with ties) up to this number of pairs. Beyond that Student's t with n
// - 2 degrees of freedom, but at least 2 / n!, the smallest p of a permutation test.
inline constexpr std::size_t kMaxExactSpearmanSize = 9;
// p of kendall(): exact up to this number of pairs, without ties (kMaxExactKendallSize) and with ties
// (kMaxExactTiedKendallSize, all permutations). Beyond that the normal approximation, corrected for ties.
inline constexpr std::size_t kMaxExactKendallSize = 50;
inline constexpr std::size_t kMaxExactTiedKendallSize = 8;

// Spearman's rho: the correlation of midranks.
std::optional<TestResult> spearman(std::span<const double> x, std::span<const double> y);
// Kendall's tau-b: corrected for ties.
std::optional<TestResult> kendall(std::span<const double> x, std::span<const double> y);

// Components of Kendall's tau and of trend tests.
struct KendallStatistics {
  std::int64_t score = 0;         // concordant minus discordant pairs
  double variance = 0;            // of s under the null hypothesis, corrected for ties
  std::optional<double> tau_b;    // nullopt if all values of one side are equal
  std::optional<double> exact_p;  // two-sided; nullopt if the sample is too large for an exact p
};
KendallStatistics compute_kendall_statistics(std::span<const double> x, std::span<const double> y);

}  // namespace joulemap::statistics
