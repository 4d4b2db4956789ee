// SPDX-License-Identifier: Apache-2.0
#include "statistics/rank_distributions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "statistics/ranks.h"

namespace joulemap::statistics {

namespace {

__extension__ using Uint128 = unsigned __int128;

// Binomial coefficients of n: 1, n, n (n - 1) / 2, ...
std::vector<double> binomial_coefficients(std::size_t n) {
  std::vector<double> row{1};
  for (std::size_t c = 1; c <= n; ++c) {
    row.push_back(std::round(row.back() * static_cast<double>(n - c + 1) / static_cast<double>(c)));
  }
  return row;
}

}  // namespace

std::optional<CriticalValue> critical_value(std::span<const double> counts, double total, double tail) {
  std::optional<CriticalValue> critical;
  double cumulative_count = 0;
  for (std::size_t sum = 0; sum < counts.size(); ++sum) {
    cumulative_count += counts[sum];
    if (cumulative_count / total > tail) break;
    critical = CriticalValue{sum, cumulative_count / total};
  }
  return critical;
}

std::optional<CriticalValue> normal_critical_value(double mean, double variance, double tail) {
  const double sum = std::floor(mean + normal_quantile(tail) * std::sqrt(variance) - 0.5);
  if (!(sum >= 0)) return std::nullopt;
  return CriticalValue{static_cast<std::size_t>(sum), normal_lower_tail(sum, mean, variance)};
}

bool is_rank_sum_exact(std::size_t n1, std::size_t n2) {
  const auto a = static_cast<double>(n1);
  const auto b = static_cast<double>(n2);
  return a * b * std::min(a, b) * (a + b) <= kMaxExactRankSumWork;
}

std::vector<double> count_signed_rank_sums(std::span<const std::int64_t> ranks, std::size_t max_sum) {
  std::vector<double> counts(max_sum + 1);
  counts[0] = 1;
  std::size_t reached = 0;
  for (const std::int64_t rank : ranks) {
    const auto step = static_cast<std::size_t>(rank);
    reached = std::min(reached + step, max_sum);
    for (std::size_t sum = reached; sum >= step; --sum) counts[sum] += counts[sum - step];
  }
  return counts;
}

// Dynamic programming over ties (groups of equal values), from the smallest value to the largest.
// sums_by_chosen_count[k][u]: number of ways to choose k of the values so far for the first group, with a doubled U of
// u. Choosing c values of a tie of t adds 2 c for each smaller value that was not chosen, and c (t - c) for pairs
// within the tie, which count half.
std::vector<double> count_tied_rank_sums(std::span<const std::size_t> tie_sizes, std::size_t n1) {
  const std::size_t n = std::accumulate(tie_sizes.begin(), tie_sizes.end(), std::size_t{0});
  const std::size_t n2 = n - n1;
  std::vector<std::vector<double>> sums_by_chosen_count(n1 + 1);
  for (std::size_t k = 0; k <= n1; ++k) sums_by_chosen_count[k].assign(2 * k * n2 + 1, 0);
  sums_by_chosen_count[0][0] = 1;
  std::size_t before = 0;
  for (const std::size_t size : tie_sizes) {
    const std::vector<double> ways = binomial_coefficients(size);
    // Downwards, because sums_by_chosen_count[k] of smaller k must still be the counts before this tie.
    for (std::size_t chosen = std::min(n1, before + size); chosen > 0; --chosen) {
      for (std::size_t c = 1; c <= std::min(size, chosen); ++c) {
        const std::size_t k = chosen - c;
        if (k > before || before - k > n2 || before + size - chosen > n2) continue;
        const std::size_t added = c * (2 * (before - k) + size - c);
        const std::size_t reached = 2 * k * (before - k);
        const double* from = sums_by_chosen_count[k].data();
        double* to = sums_by_chosen_count[chosen].data() + added;
        for (std::size_t u = 0; u <= reached; ++u) to[u] += ways[c] * from[u];
      }
    }
    before += size;
  }
  return sums_by_chosen_count[n1];
}

// The counts are the coefficients of a Gaussian binomial, the product over i = 1 .. n1 of (1 - q^(n2 + i)) / (1 - q^i):
// factors are multiplied and divided in place. Intermediate differences may wrap modulo 2^128; the results do not.
std::vector<double> count_rank_sums(std::size_t n1, std::size_t n2, std::size_t max_sum) {
  if (binomial_coefficient(n1 + n2, n1) > 0x1p127) {
    std::vector<double> doubled_counts = count_tied_rank_sums(std::vector<std::size_t>(n1 + n2, 1), n1);
    std::vector<double> counts(max_sum + 1);
    for (std::size_t u = 0; u <= max_sum; ++u) counts[u] = doubled_counts[2 * u];
    return counts;
  }
  std::vector<Uint128> counts(max_sum + 1);
  counts[0] = 1;
  for (std::size_t i = 1; i <= std::min(n1, n2); ++i) {
    const std::size_t factor = std::max(n1, n2) + i;
    for (std::size_t u = max_sum; u >= factor; --u) counts[u] -= counts[u - factor];
    for (std::size_t u = i; u <= max_sum; ++u) counts[u] += counts[u - i];
  }
  return {counts.begin(), counts.end()};
}

double binomial_coefficient(std::size_t n, std::size_t n1) {
  double ways = 1;
  for (std::size_t i = 1; i <= std::min(n1, n - n1); ++i) {
    ways *= static_cast<double>(n - i + 1) / static_cast<double>(i);
  }
  return ways;
}

double normal_lower_tail(double sum, double mean, double variance) {
  return normal_cdf((sum + 0.5 - mean) / std::sqrt(variance));
}

std::optional<CriticalValue> signed_rank_critical_value(std::size_t n, double tail) {
  const std::size_t all = n * (n + 1) / 2;
  if (n <= kMaxExactSignedRankSize) {
    std::vector<std::int64_t> ranks(n);
    std::iota(ranks.begin(), ranks.end(), 1);
    return critical_value(count_signed_rank_sums(ranks, all / 2), std::exp2(static_cast<double>(n)), tail);
  }
  const auto size = static_cast<double>(n);
  return normal_critical_value(static_cast<double>(all) / 2, size * (size + 1) * (2 * size + 1) / 24, tail);
}

std::optional<CriticalValue> rank_sum_critical_value(std::size_t n1, std::size_t n2, double tail) {
  if (is_rank_sum_exact(n1, n2)) {
    return critical_value(count_rank_sums(n1, n2, n1 * n2 / 2), binomial_coefficient(n1 + n2, n1), tail);
  }
  const double pairs = static_cast<double>(n1) * static_cast<double>(n2);
  return normal_critical_value(pairs / 2, pairs * static_cast<double>(n1 + n2 + 1) / 12, tail);
}

}  // namespace joulemap::statistics
