// SPDX-License-Identifier: Apache-2.0
#include "statistics/rank_tests.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace joulemap::statistics {

std::vector<double> paired_differences(std::span<const double> first_values, std::span<const double> second_values) {
  JOULEMAP_CHECK(first_values.size() == second_values.size(), "pairs have two sides");
  std::vector<double> differences(first_values.size());
  std::ranges::transform(first_values, second_values, differences.begin(), std::minus());
  return differences;
}

namespace {

// Ranks of the nonzero differences, and the rank sum of the positive ones.
struct SignedRanks {
  std::vector<std::int64_t> doubled_ranks;
  std::int64_t doubled_positive_sum = 0;  // doubled W+
  std::int64_t doubled_total_sum = 0;     // doubled sum of all ranks
};

SignedRanks rank_differences(std::span<const double> differences, ZeroDifferences zeros) {
  std::vector<double> ranked_differences;
  for (const double difference : differences) {
    if (difference != 0 || zeros == ZeroDifferences::pratt) ranked_differences.push_back(difference);
  }
  std::vector<double> sizes(ranked_differences.size());
  std::ranges::transform(ranked_differences, sizes.begin(), [](double d) { return std::abs(d); });
  const Ranks ranks = midranks(sizes);
  SignedRanks result;
  for (std::size_t i = 0; i < ranked_differences.size(); ++i) {
    if (ranked_differences[i] == 0) continue;
    result.doubled_ranks.push_back(ranks.doubled_ranks[i]);
    result.doubled_total_sum += ranks.doubled_ranks[i];
    if (ranked_differences[i] > 0) result.doubled_positive_sum += ranks.doubled_ranks[i];
  }
  return result;
}

// Returns 2 if all doubled ranks are even, otherwise 1. Dividing the ranks by it halves the number of possible sums.
std::int64_t doubled_rank_divisor(std::span<const std::int64_t> doubled_ranks) {
  return std::ranges::all_of(doubled_ranks, [](std::int64_t rank) { return rank % 2 == 0; }) ? 2 : 1;
}

// Counts one tail only: the distribution is symmetric, also with ties, because a sign assignment and its opposite are
// equally likely.
double exact_signed_rank_p(SignedRanks ranks) {
  const std::int64_t unit = doubled_rank_divisor(ranks.doubled_ranks);
  for (std::int64_t& rank : ranks.doubled_ranks) rank /= unit;
  const std::int64_t lesser_rank_sum =
      std::min(ranks.doubled_positive_sum, ranks.doubled_total_sum - ranks.doubled_positive_sum);
  if (2 * lesser_rank_sum == ranks.doubled_total_sum) return 1;
  const std::vector<double> counts =
      count_signed_rank_sums(ranks.doubled_ranks, static_cast<std::size_t>(lesser_rank_sum / unit));
  const double at_most = std::accumulate(counts.begin(), counts.end(), 0.0);
  return std::min(1.0, std::ldexp(at_most, 1 - static_cast<int>(ranks.doubled_ranks.size())));
}

double normal_signed_rank_p(const SignedRanks& ranks) {
  double squares = 0;
  for (const std::int64_t rank : ranks.doubled_ranks) squares += static_cast<double>(rank) * static_cast<double>(rank);
  const double distance = std::abs(static_cast<double>(2 * ranks.doubled_positive_sum - ranks.doubled_total_sum)) /
                          4;  // of W+ from its mean
  return two_sided_normal_p(std::max(0.0, distance - 0.5) / std::sqrt(squares / 16));
}

Ranks rank_both_samples(std::span<const double> first_values, std::span<const double> second_values) {
  std::vector<double> pooled_values(first_values.begin(), first_values.end());
  pooled_values.insert(pooled_values.end(), second_values.begin(), second_values.end());
  return midranks(pooled_values);
}

// Doubled U of the first n1 values. Every `doubled_u` below is doubled, too.
std::int64_t doubled_u_statistic(const Ranks& ranks, std::size_t n1) {
  const std::int64_t sum = std::accumulate(
      ranks.doubled_ranks.begin(), ranks.doubled_ranks.begin() + static_cast<std::ptrdiff_t>(n1), std::int64_t{0});
  return sum - static_cast<std::int64_t>(n1 * (n1 + 1));
}

// Counts one tail only: without ties the distribution is symmetric.
double untied_rank_sum_p(std::size_t n1, std::size_t n2, std::int64_t doubled_u) {
  const std::size_t lesser_rank_sum =
      std::min(static_cast<std::size_t>(doubled_u) / 2, n1 * n2 - static_cast<std::size_t>(doubled_u) / 2);
  const std::vector<double> counts = count_rank_sums(n1, n2, lesser_rank_sum);
  return std::min(1.0, 2 * std::accumulate(counts.begin(), counts.end(), 0.0) / binomial_coefficient(n1 + n2, n1));
}

double exact_rank_sum_p(const Ranks& ranks, std::size_t n1, std::size_t n2, std::int64_t doubled_u) {
  if (!ranks.has_ties()) return untied_rank_sum_p(n1, n2, doubled_u);
  const std::vector<double> counts = count_tied_rank_sums(ranks.tie_sizes, std::min(n1, n2));
  const auto mean = static_cast<std::int64_t>(n1 * n2);  // of the doubled U, which is 0 .. 2 n1 n2 for either group
  const std::int64_t distance = std::abs(doubled_u - mean);
  double extreme_count = 0;
  double arrangement_count = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    arrangement_count += counts[i];
    if (std::abs(static_cast<std::int64_t>(i) - mean) >= distance) extreme_count += counts[i];
  }
  return std::min(1.0, extreme_count / arrangement_count);
}

double normal_rank_sum_p(const Ranks& ranks, std::size_t n1, std::size_t n2, std::int64_t doubled_u) {
  const double pairs = static_cast<double>(n1) * static_cast<double>(n2);
  const auto n = static_cast<double>(n1 + n2);
  const double variance = pairs / 12 * (n + 1 - ranks.tie_correction() / (n * (n - 1)));
  if (variance <= 0) return 1;
  const double distance = std::abs(static_cast<double>(doubled_u) - pairs) / 2;
  return two_sided_normal_p(std::max(0.0, distance - 0.5) / std::sqrt(variance));
}

}  // namespace

TestResult signed_rank_test(std::span<const double> differences, ZeroDifferences zeros) {
  const SignedRanks ranks = rank_differences(differences, zeros);
  TestResult result{static_cast<double>(ranks.doubled_positive_sum) / 2, 1, ranks.doubled_ranks.size(),
                    PValueMethod::exact};
  if (result.n == 0) return result;
  if (result.n > kMaxExactSignedRankSize) result.p_value_method = PValueMethod::normal;
  result.p = result.p_value_method == PValueMethod::exact ? exact_signed_rank_p(ranks) : normal_signed_rank_p(ranks);
  return result;
}

TestResult signed_rank_test(std::span<const double> first_values, std::span<const double> second_values,
                            ZeroDifferences zeros) {
  return signed_rank_test(paired_differences(first_values, second_values), zeros);
}

double signed_rank_sum(std::span<const double> first_values, std::span<const double> second_values) {
  return static_cast<double>(rank_differences(paired_differences(first_values, second_values), ZeroDifferences::drop)
                                 .doubled_positive_sum) /
         2;
}

double rank_sum_u(std::span<const double> first_values, std::span<const double> second_values) {
  const auto ranks = rank_both_samples(first_values, second_values);
  return static_cast<double>(doubled_u_statistic(ranks, first_values.size())) / 2;
}

TestResult rank_sum_test(std::span<const double> first_values, std::span<const double> second_values) {
  TestResult result{0, 1, first_values.size() + second_values.size(), PValueMethod::exact};
  if (first_values.empty() || second_values.empty()) return result;
  const Ranks ranks = rank_both_samples(first_values, second_values);
  const std::int64_t doubled_u = doubled_u_statistic(ranks, first_values.size());
  result.statistic = static_cast<double>(doubled_u) / 2;
  if (ranks.tie_sizes.size() == 1) return result;
  if (is_rank_sum_exact(first_values.size(), second_values.size())) {
    result.p = exact_rank_sum_p(ranks, first_values.size(), second_values.size(), doubled_u);
  } else {
    result.p_value_method = PValueMethod::normal;
    result.p = normal_rank_sum_p(ranks, first_values.size(), second_values.size(), doubled_u);
  }
  return result;
}

TestResult friedman_test(std::span<const std::vector<double>> blocks) {
  TestResult result{0, 1, blocks.size(), PValueMethod::chi_squared};
  const std::size_t treatments = blocks.empty() ? 0 : blocks.front().size();
  if (treatments < 2) return result;
  std::vector<double> rank_sums(treatments);
  double tie_correction = 0;
  for (const std::vector<double>& block : blocks) {
    JOULEMAP_CHECK(block.size() == treatments, "a block has a value of each way");
    const Ranks ranks = midranks(block);
    tie_correction += ranks.tie_correction();
    for (std::size_t i = 0; i < treatments; ++i) rank_sums[i] += static_cast<double>(ranks.doubled_ranks[i]) / 2;
  }
  const auto k = static_cast<double>(treatments);
  const auto n = static_cast<double>(blocks.size());
  double squares = 0;
  for (const double sum : rank_sums) squares += (sum - n * (k + 1) / 2) * (sum - n * (k + 1) / 2);
  const double tie_free_fraction = 1 - tie_correction / (n * (k * k * k - k));
  if (tie_free_fraction <= 0) return result;
  result.statistic = 12 * squares / (n * k * (k + 1)) / tie_free_fraction;
  result.p = chi_squared_tail(result.statistic, k - 1);
  return result;
}

TestResult kruskal_wallis_test(std::span<const std::vector<double>> groups) {
  std::vector<double> pooled_values;
  std::size_t nonempty_group_count = 0;
  for (const std::vector<double>& group : groups) {
    pooled_values.insert(pooled_values.end(), group.begin(), group.end());
    nonempty_group_count += group.empty() ? 0 : 1;
  }
  TestResult result{0, 1, pooled_values.size(), PValueMethod::chi_squared};
  const Ranks ranks = midranks(pooled_values);
  if (nonempty_group_count < 2 || ranks.tie_sizes.size() == 1) return result;
  const auto n = static_cast<double>(pooled_values.size());
  double rank_spread = 0;
  std::size_t value_index = 0;
  for (const std::vector<double>& group : groups) {
    double sum = 0;
    for (std::size_t i = 0; i < group.size(); ++i) sum += static_cast<double>(ranks.doubled_ranks[value_index++]) / 2;
    if (group.empty()) continue;
    const auto size = static_cast<double>(group.size());
    rank_spread += (sum / size - (n + 1) / 2) * (sum / size - (n + 1) / 2) * size;
  }
  result.statistic = 12 * rank_spread / (n * (n + 1)) / (1 - ranks.tie_correction() / (n * n * n - n));
  result.p = chi_squared_tail(result.statistic, static_cast<double>(nonempty_group_count - 1));
  return result;
}

}  // namespace joulemap::statistics
