// SPDX-License-Identifier: Apache-2.0
#include "statistics/post_hoc.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "statistics/ranks.h"

namespace joulemap::statistics {

namespace {

double normal_density(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * M_PI); }

// a^m - b^m for a >= b, from a, b and a - b, where a - b may be too small to compute from a and b.
double difference_of_mth_powers(double a, double b, double difference, std::size_t m) {
  double sum = 0;
  for (std::size_t i = 0; i < m; ++i) {
    sum = sum * a + std::pow(b, static_cast<double>(i));
  }
  return difference * sum;
}

}  // namespace

double studentized_range_tail(double range_threshold, std::size_t k) {
  if (k < 2 || range_threshold <= 0) return 1;
  // Integrates over z, the largest of the k values: all others are below z, but not all within q of it. The integrand
  // is smooth and vanishes at both ends, so that the trapezoidal rule converges exponentially.
  constexpr double kStep = 1.0 / 32;
  double sum = 0;
  for (double z = -9; z <= range_threshold + 9; z += kStep) {
    const double unshifted_cdf = normal_cdf(z);
    const double shifted_normal_cdf = normal_cdf(z - range_threshold);
    sum += normal_density(z) *
           difference_of_mth_powers(unshifted_cdf, unshifted_cdf - shifted_normal_cdf, shifted_normal_cdf, k - 1);
  }
  return std::min(1.0, static_cast<double>(k) * sum * kStep);
}

std::vector<PairComparison> dunn_test(std::span<const std::vector<double>> groups) {
  std::vector<double> pooled_values;
  for (const std::vector<double>& group : groups) pooled_values.insert(pooled_values.end(), group.begin(), group.end());
  const Ranks ranks = midranks(pooled_values);
  std::vector<double> mean_ranks;
  std::size_t value_index = 0;
  for (const std::vector<double>& group : groups) {
    double sum = 0;
    for (std::size_t i = 0; i < group.size(); ++i) sum += static_cast<double>(ranks.doubled_ranks[value_index++]) / 2;
    mean_ranks.push_back(group.empty() ? 0 : sum / static_cast<double>(group.size()));
  }
  const auto n = static_cast<double>(pooled_values.size());
  const double variance = n < 2 ? 0 : (n * (n + 1) - ranks.tie_correction() / (n - 1)) / 12;
  std::vector<PairComparison> pairs;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t j = i + 1; j < groups.size(); ++j) {
      if (groups[i].empty() || groups[j].empty()) continue;
      PairComparison pair{i, j, mean_ranks[i] - mean_ranks[j], 1};
      const double sizes = 1 / static_cast<double>(groups[i].size()) + 1 / static_cast<double>(groups[j].size());
      if (ranks.tie_sizes.size() > 1)
        pair.p = two_sided_normal_p(pair.mean_rank_difference / std::sqrt(variance * sizes));
      pairs.push_back(pair);
    }
  }
  return pairs;
}

std::vector<PairComparison> nemenyi_test(std::span<const std::vector<double>> blocks) {
  const std::size_t treatments = blocks.empty() ? 0 : blocks.front().size();
  std::vector<double> mean_ranks(treatments);
  for (const std::vector<double>& block : blocks) {
    JOULEMAP_CHECK(block.size() == treatments, "a block has a value of each way");
    const Ranks ranks = midranks(block);
    for (std::size_t i = 0; i < treatments; ++i) {
      mean_ranks[i] += static_cast<double>(ranks.doubled_ranks[i]) / (2 * static_cast<double>(blocks.size()));
    }
  }
  const auto k = static_cast<double>(treatments);
  std::vector<PairComparison> pairs;
  for (std::size_t i = 0; i < treatments; ++i) {
    for (std::size_t j = i + 1; j < treatments; ++j) {
      const double difference = mean_ranks[i] - mean_ranks[j];
      const double standard_error = std::sqrt(k * (k + 1) / (12 * static_cast<double>(blocks.size())));
      pairs.push_back({i, j, difference, studentized_range_tail(std::abs(difference) / standard_error, treatments)});
    }
  }
  return pairs;
}

}  // namespace joulemap::statistics
