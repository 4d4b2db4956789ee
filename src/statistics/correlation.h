// SPDX-License-Identifier: Apache-2.0
//
// Do two things go together, such as energy and time? Rank correlations: 1 where the greater one is always with the
// greater other, -1 where with the lesser, whatever the shape of the curve. The spans must be of one length. Without
// any spread on one side there is no coefficient: nothing is given. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "statistics/ranks.h"

namespace joulemap::statistics {

// Up to this many pairs all permutations are counted, ties and all, by Spearman; beyond that Student's t of n - 2
// degrees of freedom (never below 2 / n!, the least that permutations could give).
inline constexpr std::size_t kExactSpearmanLimit = 9;
// Kendall: without ties exact up to the first, with ties (all permutations) up to the second; beyond that normal,
// corrected for ties.
inline constexpr std::size_t kExactKendallLimit = 50;
inline constexpr std::size_t kExactTiedKendallLimit = 8;

// Spearman's rho: the correlation of midranks.
std::optional<TestResult> spearman(std::span<const double> x, std::span<const double> y);
// Kendall's tau-b: corrected for ties.
std::optional<TestResult> kendall(std::span<const double> x, std::span<const double> y);

// What Kendall's tau and tests for trends are made of.
struct KendallSum {
  std::int64_t s = 0;             // pairs that go the same way minus pairs that go opposite ways
  double variance = 0;            // of s by chance, corrected for ties
  std::optional<double> tau_b;    // nothing without any spread
  std::optional<double> exact_p;  // two-sided, where it can be counted
};
KendallSum kendall_sum(std::span<const double> x, std::span<const double> y);

}  // namespace joulemap::statistics
