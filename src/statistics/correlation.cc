// SPDX-License-Identifier: Apache-2.0
#include "statistics/correlation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/check.h"
#include "statistics/permutations.h"

namespace joulemap::statistics {

namespace {

double factorial(std::size_t n) {
  double product = 1;
  for (std::size_t i = 2; i <= n; ++i) product *= static_cast<double>(i);
  return product;
}

// Sums over ties in the variance of Kendall's S.
struct KendallTieSums {
  double tied_pairs = 0;     // t (t - 1) / 2
  double tied_triples = 0;   // t (t - 1) (t - 2)
  double variance_term = 0;  // t (t - 1) (2 t + 5)
};

KendallTieSums kendall_tie_sums(const Ranks& ranks) {
  KendallTieSums sums;
  for (const std::size_t size : ranks.tie_sizes) {
    const auto t = static_cast<double>(size);
    sums.tied_pairs += t * (t - 1) / 2;
    sums.tied_triples += t * (t - 1) * (t - 2);
    sums.variance_term += t * (t - 1) * (2 * t + 5);
  }
  return sums;
}

std::int64_t sign_of(std::int64_t value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

// Concordant minus discordant pairs.
std::int64_t kendall_score(std::span<const std::int64_t> x, std::span<const std::int64_t> y) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) sum += sign_of(x[i] - x[j]) * sign_of(y[i] - y[j]);
  }
  return sum;
}

double exact_spearman_p(const Ranks& x, const Ranks& y, std::int64_t products) {
  const auto n = static_cast<std::int64_t>(x.doubled_ranks.size());
  const std::int64_t mean = n * (n + 1) * (n + 1);  // expected sum of products of doubled ranks
  const std::int64_t distance = std::abs(products - mean);
  std::vector<std::int64_t> permuted_ranks = y.doubled_ranks;
  return fraction_of_permutations(permuted_ranks, [&] {
    std::int64_t sum = -mean;
    for (std::size_t i = 0; i < permuted_ranks.size(); ++i) sum += x.doubled_ranks[i] * permuted_ranks[i];
    return std::abs(sum) >= distance;
  });
}

// Number of permutations of n values with exactly 0, 1, 2, ... inversions.
std::vector<double> count_permutations_by_inversions(std::size_t n) {
  std::vector<double> counts{1};
  for (std::size_t size = 2; size <= n; ++size) {
    std::vector<double> next_counts(counts.size() + size - 1);
    for (std::size_t added_inversions = 0; added_inversions < size; ++added_inversions) {
      for (std::size_t k = 0; k < counts.size(); ++k) next_counts[k + added_inversions] += counts[k];
    }
    counts = std::move(next_counts);
  }
  return counts;
}

double untied_kendall_p(std::size_t n, std::int64_t s) {
  const auto pairs = static_cast<std::int64_t>(n * (n - 1) / 2);
  const auto max_inversions = static_cast<std::size_t>((pairs - std::abs(s)) / 2);
  const std::vector<double> counts = count_permutations_by_inversions(n);
  double cumulative_count = 0;
  for (std::size_t k = 0; k <= max_inversions; ++k) cumulative_count += counts[k];
  return std::min(1.0, 2 * cumulative_count / factorial(n));
}

double tied_kendall_p(const Ranks& x, const Ranks& y, std::int64_t s) {
  std::vector<std::int64_t> permuted_ranks = y.doubled_ranks;
  return fraction_of_permutations(
      permuted_ranks, [&] { return std::abs(kendall_score(x.doubled_ranks, permuted_ranks)) >= std::abs(s); });
}

}  // namespace

KendallStatistics compute_kendall_statistics(std::span<const double> x, std::span<const double> y) {
  const Ranks x_ranks = midranks(x);
  const Ranks y_ranks = midranks(y);
  const auto n = static_cast<double>(x.size());
  const KendallTieSums x_ties = kendall_tie_sums(x_ranks);
  const KendallTieSums y_ties = kendall_tie_sums(y_ranks);
  const double pairs = n * (n - 1) / 2;
  KendallStatistics result;
  result.score = kendall_score(x_ranks.doubled_ranks, y_ranks.doubled_ranks);
  const double tie_free_scale = std::sqrt(pairs - x_ties.tied_pairs) * std::sqrt(pairs - y_ties.tied_pairs);
  if (tie_free_scale > 0) result.tau_b = static_cast<double>(result.score) / tie_free_scale;
  result.variance = (n * (n - 1) * (2 * n + 5) - x_ties.variance_term - y_ties.variance_term) / 18;
  if (n > 1) result.variance += x_ties.tied_pairs * y_ties.tied_pairs / pairs;
  if (n > 2) result.variance += x_ties.tied_triples * y_ties.tied_triples / (9 * n * (n - 1) * (n - 2));
  const bool has_ties = x_ranks.has_ties() || y_ranks.has_ties();
  if (tie_free_scale > 0 && !has_ties && x.size() <= kMaxExactKendallSize) {
    result.exact_p = untied_kendall_p(x.size(), result.score);
  } else if (tie_free_scale > 0 && has_ties && x.size() <= kMaxExactTiedKendallSize) {
    result.exact_p = tied_kendall_p(x_ranks, y_ranks, result.score);
  }
  return result;
}

std::optional<TestResult> spearman(std::span<const double> x, std::span<const double> y) {
  JOULEMAP_CHECK(x.size() == y.size(), "pairs have two sides");
  const Ranks x_ranks = midranks(x);
  const Ranks y_ranks = midranks(y);
  if (x_ranks.tie_sizes.size() < 2 || y_ranks.tie_sizes.size() < 2) return std::nullopt;
  const auto n = static_cast<std::int64_t>(x.size());
  std::int64_t products = 0;
  for (std::size_t i = 0; i < x.size(); ++i) products += x_ranks.doubled_ranks[i] * y_ranks.doubled_ranks[i];
  const auto cubes = static_cast<double>(n * n * n - n);
  const double rank_normalizer =
      std::sqrt((cubes - x_ranks.tie_correction()) / 3) * std::sqrt((cubes - y_ranks.tie_correction()) / 3);
  const double rho = std::clamp(static_cast<double>(products - n * (n + 1) * (n + 1)) / rank_normalizer, -1.0, 1.0);
  if (x.size() <= kMaxExactSpearmanSize) {
    return TestResult{rho, exact_spearman_p(x_ranks, y_ranks, products), x.size(), PValueMethod::exact};
  }
  const auto freedom = static_cast<double>(n - 2);
  const double t = rho * std::sqrt(freedom / ((1 - rho) * (1 + rho)));
  return TestResult{rho, std::max(two_sided_t_p(t, freedom), 2 / factorial(x.size())), x.size(),
                    PValueMethod::students_t};
}

std::optional<TestResult> kendall(std::span<const double> x, std::span<const double> y) {
  JOULEMAP_CHECK(x.size() == y.size(), "pairs have two sides");
  const KendallStatistics sum = compute_kendall_statistics(x, y);
  if (!sum.tau_b) return std::nullopt;
  if (sum.exact_p) return TestResult{*sum.tau_b, *sum.exact_p, x.size(), PValueMethod::exact};
  const double z = static_cast<double>(sum.score) / std::sqrt(sum.variance);
  return TestResult{*sum.tau_b, two_sided_normal_p(z), x.size(), PValueMethod::normal};
}

}  // namespace joulemap::statistics
