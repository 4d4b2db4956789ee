// SPDX-License-Identifier: Apache-2.0
#include "statistics/series.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "statistics/bootstrap.h"
#include "statistics/correlation.h"
#include "statistics/permutations.h"
#include "statistics/random.h"

namespace joulemap::statistics {

namespace {

// All slopes are stored to find their median. Series with more pairs than this use only pairs at every k-th distance,
// with k large enough to stay below the limit.
constexpr std::size_t kMaxTheilSenSlopes = 2'000'000;
constexpr std::size_t kMaxExactPettittSize = 8;
constexpr std::size_t kMaxPermutations = 9'999;
// Number of permutations that reach K before drawing stops. p = 0.05 then has a relative standard error of 10 %, and
// series without a change need only a few hundred permutations.
constexpr std::size_t kExtremePermutationsToStop = 100;

double theil_sen_slope(std::span<const double> values) {
  const std::size_t pairs = values.size() * (values.size() - 1) / 2;
  const std::size_t step = pairs / kMaxTheilSenSlopes + 1;
  std::vector<double> slopes;
  for (std::size_t distance = 1; distance < values.size(); distance += step) {
    for (std::size_t i = 0; i + distance < values.size(); ++i) {
      slopes.push_back((values[i + distance] - values[i]) / static_cast<double>(distance));
    }
  }
  return slopes.empty() ? 0 : median_of(slopes);
}

struct PettittStatistic {
  std::int64_t statistic = -1;  // Pettitt's |U|
  std::size_t first_after_change = 0;
};

// Pettitt's U after the first t values is twice their rank sum minus its expectation, t (n + 1). Finds the t with the
// largest |U|.
PettittStatistic find_max_pettitt_statistic(std::span<const std::int64_t> doubled_ranks) {
  PettittStatistic max_statistic;
  const auto mean = static_cast<std::int64_t>(doubled_ranks.size()) + 1;
  std::int64_t u_statistic = 0;
  for (std::size_t i = 0; i + 1 < doubled_ranks.size(); ++i) {
    u_statistic += doubled_ranks[i] - mean;
    if (std::abs(u_statistic) > max_statistic.statistic) max_statistic = {std::abs(u_statistic), i + 1};
  }
  return max_statistic;
}

double pettitt_permutation_p(std::vector<std::int64_t> ranks, std::int64_t size, std::uint64_t seed) {
  Random random(seed);
  std::size_t extreme_count = 0;
  for (std::size_t permutation_count = 1; permutation_count <= kMaxPermutations; ++permutation_count) {
    for (std::size_t i = ranks.size() - 1; i > 0; --i) std::swap(ranks[i], ranks[random.uniform_below(i + 1)]);
    if (find_max_pettitt_statistic(ranks).statistic < size) continue;
    if (++extreme_count == kExtremePermutationsToStop)
      return static_cast<double>(extreme_count) / static_cast<double>(permutation_count);
  }
  return static_cast<double>(extreme_count + 1) / static_cast<double>(kMaxPermutations + 1);
}

}  // namespace

Trend mann_kendall_trend(std::span<const double> values) {
  Trend trend;
  trend.test.n = values.size();
  if (values.size() < 2) return trend;
  std::vector<double> order(values.size());
  std::iota(order.begin(), order.end(), 0.0);
  const KendallStatistics sum = compute_kendall_statistics(order, values);
  trend.test.statistic = static_cast<double>(sum.score);
  trend.tau = sum.tau_b.value_or(0);
  trend.slope = theil_sen_slope(values);
  const double median = median_of(values);
  if (median != 0) trend.relative_slope = trend.slope / std::abs(median);
  if (!sum.tau_b) return trend;
  if (sum.exact_p) {
    trend.test.p = *sum.exact_p;
    return trend;
  }
  trend.test.p_value_method = PValueMethod::normal;
  trend.test.p = two_sided_normal_p(std::max(0.0, std::abs(trend.test.statistic) - 1) / std::sqrt(sum.variance));
  return trend;
}

std::optional<ChangePoint> find_change_point(std::span<const double> values, std::uint64_t seed) {
  if (values.size() < 2) return std::nullopt;
  std::vector<std::int64_t> ranks = midranks(values).doubled_ranks;
  const PettittStatistic change_statistic = find_max_pettitt_statistic(ranks);
  ChangePoint change;
  change.first_after_change = change_statistic.first_after_change;
  change.median_before = median_of(values.first(change_statistic.first_after_change));
  change.median_after = median_of(values.subspan(change_statistic.first_after_change));
  change.test = {static_cast<double>(change_statistic.statistic), 1, values.size(), PValueMethod::exact};
  if (change_statistic.statistic == 0) return change;
  if (values.size() <= kMaxExactPettittSize) {
    change.test.p = fraction_of_permutations(
        ranks, [&] { return find_max_pettitt_statistic(ranks).statistic >= change_statistic.statistic; });
  } else {
    change.test.p_value_method = PValueMethod::permutation;
    change.test.p = pettitt_permutation_p(std::move(ranks), change_statistic.statistic, seed);
  }
  return change;
}

std::optional<ChangePoint> find_warm_up_end(std::span<const double> values, double alpha, std::uint64_t seed) {
  const std::optional<ChangePoint> change = find_change_point(values, seed);
  if (!change || change->test.p > alpha || 2 * change->first_after_change > values.size()) return std::nullopt;
  return change;
}

std::vector<std::size_t> find_modified_z_outliers(std::span<const double> values, double limit) {
  std::vector<std::size_t> outliers;
  if (values.empty()) return outliers;
  const double median = median_of(values);
  std::vector<double> distances(values.size());
  std::ranges::transform(values, distances.begin(), [&](double value) { return std::abs(value - median); });
  const double deviation = median_of(distances);
  // Estimates the standard deviation: for a normal distribution MAD is 0.6745 and the mean absolute deviation 1 /
  // 1.2533 standard deviations.
  const double estimated_sd = deviation > 0 ? deviation / 0.6745 : 1.253314 * mean_of(distances);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (distances[i] > limit * estimated_sd) outliers.push_back(i);
  }
  return outliers;
}

std::vector<std::size_t> find_tukey_outliers(std::span<const double> values, double fence_factor) {
  std::vector<std::size_t> outliers;
  if (values.empty()) return outliers;
  std::vector<double> sorted_values(values.begin(), values.end());
  std::ranges::sort(sorted_values);
  const double lower_quartile = quantile_of_sorted(sorted_values, 0.25);
  const double upper_quartile = quantile_of_sorted(sorted_values, 0.75);
  const double fence_distance = fence_factor * (upper_quartile - lower_quartile);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < lower_quartile - fence_distance || values[i] > upper_quartile + fence_distance)
      outliers.push_back(i);
  }
  return outliers;
}

}  // namespace joulemap::statistics
