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
  for (std::size_t chosen_count = 1; chosen_count <= n; ++chosen_count) {
    row.push_back(
        std::round(row.back() * static_cast<double>(n - chosen_count + 1) / static_cast<double>(chosen_count)));
  }
  return row;
}

}  // namespace

std::optional<CriticalValue> critical_value(std::span<const double> counts, double total, double tail_probability) {
  std::optional<CriticalValue> critical;
  double cumulative_count = 0;
  for (std::size_t sum = 0; sum < counts.size(); ++sum) {
    cumulative_count += counts[sum];
    if (cumulative_count / total > tail_probability) break;
    critical = CriticalValue{sum, cumulative_count / total};
  }
  return critical;
}

std::optional<CriticalValue> normal_critical_value(double mean, double variance, double tail_probability) {
  const double sum = std::floor(mean + normal_quantile(tail_probability) * std::sqrt(variance) - 0.5);
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
  std::size_t reachable_sum = 0;
  for (const std::int64_t rank : ranks) {
    const auto step = static_cast<std::size_t>(rank);
    reachable_sum = std::min(reachable_sum + step, max_sum);
    for (std::size_t sum = reachable_sum; sum >= step; --sum) counts[sum] += counts[sum - step];
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
  std::size_t smaller_value_count = 0;
  for (const std::size_t size : tie_sizes) {
    const std::vector<double> binomial_row = binomial_coefficients(size);
    // Downwards, because sums_by_chosen_count[k] of smaller k must still be the counts before this tie.
    for (std::size_t chosen_count = std::min(n1, smaller_value_count + size); chosen_count > 0; --chosen_count) {
      for (std::size_t tie_choice_count = 1; tie_choice_count <= std::min(size, chosen_count); ++tie_choice_count) {
        const std::size_t k = chosen_count - tie_choice_count;
        if (k > smaller_value_count || smaller_value_count - k > n2 || smaller_value_count + size - chosen_count > n2)
          continue;
        const std::size_t added_doubled_u =
            tie_choice_count * (2 * (smaller_value_count - k) + size - tie_choice_count);
        const std::size_t max_doubled_u = 2 * k * (smaller_value_count - k);
        const double* source_counts = sums_by_chosen_count[k].data();
        double* target_counts = sums_by_chosen_count[chosen_count].data() + added_doubled_u;
        for (std::size_t doubled_u = 0; doubled_u <= max_doubled_u; ++doubled_u)
          target_counts[doubled_u] += binomial_row[tie_choice_count] * source_counts[doubled_u];
      }
    }
    smaller_value_count += size;
  }
  return sums_by_chosen_count[n1];
}

// The counts are the coefficients of a Gaussian binomial, the product over i = 1 .. n1 of (1 - q^(n2 + i)) / (1 - q^i):
// factors are multiplied and divided in place. Intermediate differences may wrap modulo 2^128; the results do not.
std::vector<double> count_rank_sums(std::size_t n1, std::size_t n2, std::size_t max_sum) {
  if (binomial_coefficient(n1 + n2, n1) > 0x1p127) {
    std::vector<double> doubled_counts = count_tied_rank_sums(std::vector<std::size_t>(n1 + n2, 1), n1);
    std::vector<double> counts(max_sum + 1);
    for (std::size_t u_statistic = 0; u_statistic <= max_sum; ++u_statistic)
      counts[u_statistic] = doubled_counts[2 * u_statistic];
    return counts;
  }
  std::vector<Uint128> counts(max_sum + 1);
  counts[0] = 1;
  for (std::size_t i = 1; i <= std::min(n1, n2); ++i) {
    const std::size_t factor = std::max(n1, n2) + i;
    for (std::size_t u_statistic = max_sum; u_statistic >= factor; --u_statistic)
      counts[u_statistic] -= counts[u_statistic - factor];
    for (std::size_t u_statistic = i; u_statistic <= max_sum; ++u_statistic)
      counts[u_statistic] += counts[u_statistic - i];
  }
  return {counts.begin(), counts.end()};
}

double binomial_coefficient(std::size_t n, std::size_t n1) {
  double coefficient = 1;
  for (std::size_t i = 1; i <= std::min(n1, n - n1); ++i) {
    coefficient *= static_cast<double>(n - i + 1) / static_cast<double>(i);
  }
  return coefficient;
}

double normal_lower_tail(double sum, double mean, double variance) {
  return normal_cdf((sum + 0.5 - mean) / std::sqrt(variance));
}

std::optional<CriticalValue> signed_rank_critical_value(std::size_t n, double tail_probability) {
  const std::size_t max_rank_sum = n * (n + 1) / 2;
  if (n <= kMaxExactSignedRankSize) {
    std::vector<std::int64_t> ranks(n);
    std::iota(ranks.begin(), ranks.end(), 1);
    return critical_value(count_signed_rank_sums(ranks, max_rank_sum / 2), std::exp2(static_cast<double>(n)),
                          tail_probability);
  }
  const auto size = static_cast<double>(n);
  return normal_critical_value(static_cast<double>(max_rank_sum) / 2, size * (size + 1) * (2 * size + 1) / 24,
                               tail_probability);
}

std::optional<CriticalValue> rank_sum_critical_value(std::size_t n1, std::size_t n2, double tail_probability) {
  if (is_rank_sum_exact(n1, n2)) {
    return critical_value(count_rank_sums(n1, n2, n1 * n2 / 2), binomial_coefficient(n1 + n2, n1), tail_probability);
  }
  const double pairs = static_cast<double>(n1) * static_cast<double>(n2);
  return normal_critical_value(pairs / 2, pairs * static_cast<double>(n1 + n2 + 1) / 12, tail_probability);
}

}  // namespace joulemap::statistics
