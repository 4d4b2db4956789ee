// SPDX-License-Identifier: Apache-2.0
#include "statistics/stratified_tests.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "statistics/pairwise_counts.h"
#include "statistics/rank_distributions.h"
#include "statistics/rank_tests.h"

namespace joulemap::statistics {

namespace {

// Weights are integers, so that sums are exact. Common multiples beyond this are rounded.
constexpr std::int64_t kMaxCommonMultiple = 1'000'000;

// Integers in the ratio of 1 / (n + 1), as small as possible.
std::vector<std::int64_t> van_elteren_weights(std::span<const std::size_t> sizes) {
  std::int64_t multiple = 1;
  for (const std::size_t n : sizes) {
    multiple = std::lcm(multiple, static_cast<std::int64_t>(n + 1));
    if (multiple > kMaxCommonMultiple) break;
  }
  multiple = std::min(multiple, kMaxCommonMultiple);
  std::vector<std::int64_t> weights;
  std::int64_t common_divisor = 0;
  for (const std::size_t n : sizes) {
    const auto divisor = static_cast<std::int64_t>(n + 1);
    weights.push_back(std::max<std::int64_t>(1, (multiple + divisor / 2) / divisor));
    common_divisor = std::gcd(common_divisor, weights.back());
  }
  for (std::int64_t& weight : weights) weight /= common_divisor;
  return weights;
}

std::vector<Stratum> select_strata_with_repetitions(std::span<const Stratum> strata) {
  std::vector<Stratum> repeated_strata;
  std::ranges::copy_if(strata, std::back_inserter(repeated_strata), has_repetitions);
  return repeated_strata;
}

// One of the independent terms of a sum: its possible values with their probabilities.
using DiscreteDistribution = std::vector<std::pair<std::size_t, double>>;

// Probability that the sum of the terms is 0, 1, 2, ...
std::vector<double> convolve_distributions(std::span<const DiscreteDistribution> terms) {
  std::vector<double> probabilities{1};
  for (const DiscreteDistribution& term : terms) {
    std::vector<double> next_probabilities(probabilities.size() + term.back().first);
    for (const auto& [value, probability] : term) {
      for (std::size_t i = 0; i < probabilities.size(); ++i)
        next_probabilities[i + value] += probability * probabilities[i];
    }
    probabilities = std::move(next_probabilities);
  }
  return probabilities;
}

// Terms of a signed-rank sum: each rank counts or does not.
std::vector<DiscreteDistribution> make_signed_rank_distributions(std::span<const std::int64_t> ranks,
                                                                 std::int64_t unit) {
  JOULEMAP_CHECK(unit > 0, "ranks have a common unit");
  std::vector<DiscreteDistribution> terms;
  for (const std::int64_t rank : ranks) terms.push_back({{0, 0.5}, {static_cast<std::size_t>(rank / unit), 0.5}});
  return terms;
}

// The term of one stratum in a rank sum, from the number of ways to each value.
DiscreteDistribution make_rank_sum_distribution(std::span<const double> counts, std::size_t scale) {
  const double total_count = std::accumulate(counts.begin(), counts.end(), 0.0);
  DiscreteDistribution term;
  for (std::size_t rank_sum = 0; rank_sum < counts.size(); ++rank_sum) {
    if (counts[rank_sum] > 0) term.emplace_back(rank_sum * scale, counts[rank_sum] / total_count);
  }
  return term;
}

// A weighted rank sum, in weights times doubled ranks, and what is expected of it without a difference.
struct WeightedRankSum {
  std::int64_t observed_sum = 0;
  std::int64_t doubled_null_mean = 0;
  double variance = 0;  // of the sum of ranks that are not doubled
};

double exact_weighted_rank_sum_p(const WeightedRankSum& sum, std::span<const DiscreteDistribution> terms,
                                 std::int64_t unit) {
  const std::vector<double> probabilities = convolve_distributions(terms);
  const std::int64_t distance = std::abs(2 * sum.observed_sum - sum.doubled_null_mean);
  double p = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    if (std::abs(2 * static_cast<std::int64_t>(i) * unit - sum.doubled_null_mean) >= distance) p += probabilities[i];
  }
  return std::clamp(p, std::numeric_limits<double>::min(), 1.0);  // hundreds of strata may underflow
}

double normal_weighted_rank_sum_p(const WeightedRankSum& sum) {
  const double distance = static_cast<double>(std::abs(2 * sum.observed_sum - sum.doubled_null_mean)) / 4;
  return two_sided_normal_p(std::max(0.0, distance - 0.5) / std::sqrt(sum.variance));
}

std::vector<double> compute_stratum_differences(const Stratum& stratum) {
  JOULEMAP_CHECK(stratum.first_values.size() == stratum.second_values.size(), "pairs have two sides");
  std::vector<double> differences(stratum.first_values.size());
  std::ranges::transform(stratum.first_values, stratum.second_values, differences.begin(), std::minus());
  return differences;
}

std::vector<std::int64_t> compute_stratum_weights(std::span<const Stratum> strata, bool is_paired) {
  std::vector<std::size_t> sizes;
  for (const Stratum& stratum : strata)
    sizes.push_back(is_paired ? stratum.first_values.size()
                              : stratum.first_values.size() + stratum.second_values.size());
  return van_elteren_weights(sizes);
}

// Doubled ranks of the nonzero differences of all strata, times the weight of their stratum.
struct WeightedSignedRanks {
  std::vector<std::int64_t> weighted_ranks;
  WeightedRankSum weighted_sum;
  double statistic = 0;
  std::size_t pair_count = 0;
};

WeightedSignedRanks compute_weighted_signed_ranks(std::span<const Stratum> strata) {
  WeightedSignedRanks result;
  const std::vector<std::int64_t> weights = compute_stratum_weights(strata, true);
  for (std::size_t stratum_index = 0; stratum_index < strata.size(); ++stratum_index) {
    const std::vector<double> differences = compute_stratum_differences(strata[stratum_index]);
    std::vector<double> sizes(differences.size());
    std::ranges::transform(differences, sizes.begin(), [](double d) { return std::abs(d); });
    const Ranks ranks = midranks(sizes);
    result.pair_count += sizes.size();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (differences[i] == 0) continue;
      const std::int64_t rank = weights[stratum_index] * ranks.doubled_ranks[i];
      result.weighted_ranks.push_back(rank);
      result.weighted_sum.doubled_null_mean += rank;
      result.weighted_sum.variance += static_cast<double>(rank) * static_cast<double>(rank) / 16;
      if (differences[i] < 0) continue;
      result.weighted_sum.observed_sum += rank;
      result.statistic += static_cast<double>(ranks.doubled_ranks[i]) / 2 / static_cast<double>(sizes.size() + 1);
    }
  }
  return result;
}

// Ranks of the values of both treatments in one stratum.
struct RankSumStratum {
  Ranks ranks;
  std::size_t n1 = 0;
  std::size_t n2 = 0;
  std::int64_t weight = 1;
  std::int64_t doubled_u = 0;

  std::size_t pairs() const { return n1 * n2; }
  double variance() const {
    const auto n = static_cast<double>(n1 + n2);
    return static_cast<double>(pairs()) / 12 * (n + 1 - ranks.tie_correction() / (n * (n - 1)));
  }
};

std::vector<RankSumStratum> make_rank_sum_strata(std::span<const Stratum> strata) {
  const std::vector<std::int64_t> weights = compute_stratum_weights(strata, false);
  std::vector<RankSumStratum> result;
  for (std::size_t stratum_index = 0; stratum_index < strata.size(); ++stratum_index) {
    std::vector<double> pooled_values = strata[stratum_index].first_values;
    pooled_values.insert(pooled_values.end(), strata[stratum_index].second_values.begin(),
                         strata[stratum_index].second_values.end());
    RankSumStratum rank_sum_stratum{midranks(pooled_values), strata[stratum_index].first_values.size(),
                                    strata[stratum_index].second_values.size(), weights[stratum_index], 0};
    rank_sum_stratum.doubled_u =
        std::accumulate(rank_sum_stratum.ranks.doubled_ranks.begin(),
                        rank_sum_stratum.ranks.doubled_ranks.begin() + static_cast<std::ptrdiff_t>(rank_sum_stratum.n1),
                        -static_cast<std::int64_t>(rank_sum_stratum.n1 * (rank_sum_stratum.n1 + 1)));
    result.push_back(std::move(rank_sum_stratum));
  }
  return result;
}

// Steps of a convolution of these terms; infinite if a stratum alone is too large for exact counts.
double count_convolution_steps(std::span<const RankSumStratum> strata) {
  double step_count = 0;
  double max_sum = 1;
  for (const RankSumStratum& stratum : strata) {
    if (!is_rank_sum_exact(stratum.n1, stratum.n2)) return std::numeric_limits<double>::infinity();
    const auto values = static_cast<double>(2 * stratum.pairs());
    step_count += max_sum * values;
    max_sum += values * static_cast<double>(stratum.weight);
  }
  return step_count;
}

// The null distribution of the sum for values without ties, and the weighted pairs from which the shift is chosen.
template <class Pairs>
std::optional<EffectEstimate> estimate_stratified_shift(const WeightedPairStrata<Pairs>& pairs,
                                                        std::span<const DiscreteDistribution> terms, double step_count,
                                                        double variance, double confidence) {
  if (pairs.size() == 0) return std::nullopt;
  const double tail_probability = (1 - confidence) / 2;
  if (step_count > kMaxExactConvolutionSteps) {
    return estimate_shift(pairs,
                          normal_critical_value(static_cast<double>(pairs.size()) / 2, variance, tail_probability), 0);
  }
  const std::vector<double> probabilities = convolve_distributions(terms);
  return estimate_shift(pairs, critical_value(probabilities, 1, tail_probability), probabilities.front());
}

}  // namespace

bool has_repetitions(const Stratum& stratum) {
  return !stratum.first_values.empty() && !stratum.second_values.empty() &&
         stratum.first_values.size() + stratum.second_values.size() > 2;
}

TestResult stratified_signed_rank_test(std::span<const Stratum> strata) {
  const WeightedSignedRanks ranks = compute_weighted_signed_ranks(select_strata_with_repetitions(strata));
  TestResult result{ranks.statistic, 1, ranks.pair_count, PValueMethod::exact};
  if (ranks.weighted_ranks.empty()) return result;
  std::int64_t unit = 0;
  for (const std::int64_t rank : ranks.weighted_ranks) unit = std::gcd(unit, rank);
  const double max_rank_sum = static_cast<double>(ranks.weighted_sum.doubled_null_mean) / static_cast<double>(unit);
  if (max_rank_sum * static_cast<double>(ranks.weighted_ranks.size()) <= kMaxExactConvolutionSteps) {
    result.p =
        exact_weighted_rank_sum_p(ranks.weighted_sum, make_signed_rank_distributions(ranks.weighted_ranks, unit), unit);
  } else {
    result.p_value_method = PValueMethod::normal;
    result.p = normal_weighted_rank_sum_p(ranks.weighted_sum);
  }
  return result;
}

TestResult stratified_rank_sum_test(std::span<const Stratum> strata) {
  const std::vector<RankSumStratum> rank_sum_strata = make_rank_sum_strata(select_strata_with_repetitions(strata));
  TestResult result{0, 1, 0, PValueMethod::exact};
  WeightedRankSum sum;
  for (const RankSumStratum& stratum : rank_sum_strata) {
    const auto weight = static_cast<double>(stratum.weight);
    result.n += stratum.n1 + stratum.n2;
    result.statistic += static_cast<double>(stratum.doubled_u) / 2 / static_cast<double>(stratum.n1 + stratum.n2 + 1);
    sum.observed_sum += stratum.weight * stratum.doubled_u;
    sum.doubled_null_mean += 2 * stratum.weight * static_cast<std::int64_t>(stratum.pairs());
    sum.variance += weight * weight * stratum.variance();
  }
  if (!(sum.variance > 0)) return result;
  if (count_convolution_steps(rank_sum_strata) <= kMaxExactConvolutionSteps) {
    std::vector<DiscreteDistribution> terms;
    terms.reserve(rank_sum_strata.size());
    for (const RankSumStratum& stratum : rank_sum_strata)
      terms.push_back(make_rank_sum_distribution(count_tied_rank_sums(stratum.ranks.tie_sizes, stratum.n1),
                                                 static_cast<std::size_t>(stratum.weight)));
    result.p = exact_weighted_rank_sum_p(sum, terms, 1);
  } else {
    result.p_value_method = PValueMethod::normal;
    result.p = normal_weighted_rank_sum_p(sum);
  }
  return result;
}

std::optional<EffectEstimate> stratified_paired_shift(std::span<const Stratum> strata, double confidence) {
  const std::vector<Stratum> repeated_strata = select_strata_with_repetitions(strata);
  const std::vector<std::int64_t> weights = compute_stratum_weights(repeated_strata, true);
  WeightedPairStrata<PairSums> pairs;
  std::vector<std::int64_t> ranks;
  double variance = 0;
  for (std::size_t stratum_index = 0; stratum_index < repeated_strata.size(); ++stratum_index) {
    const auto n = static_cast<std::int64_t>(repeated_strata[stratum_index].first_values.size());
    const auto weight = static_cast<double>(weights[stratum_index]);
    pairs.add(PairSums(compute_stratum_differences(repeated_strata[stratum_index])),
              static_cast<std::size_t>(weights[stratum_index]));
    for (std::int64_t rank = 1; rank <= n; ++rank) ranks.push_back(weights[stratum_index] * rank);
    variance += weight * weight * static_cast<double>(n * (n + 1) * (2 * n + 1)) / 24;
  }
  const double step_count = static_cast<double>(pairs.size()) * static_cast<double>(ranks.size());
  const std::vector<DiscreteDistribution> terms = step_count > kMaxExactConvolutionSteps
                                                      ? std::vector<DiscreteDistribution>()
                                                      : make_signed_rank_distributions(ranks, 1);
  const std::optional<EffectEstimate> sums = estimate_stratified_shift(pairs, terms, step_count, variance, confidence);
  if (!sums) return std::nullopt;
  return EffectEstimate{sums->estimate / 2, sums->low / 2, sums->high / 2, sums->confidence};
}

std::optional<EffectEstimate> stratified_unpaired_shift(std::span<const Stratum> strata, double confidence) {
  const std::vector<Stratum> repeated_strata = select_strata_with_repetitions(strata);
  const std::vector<RankSumStratum> rank_sum_strata = make_rank_sum_strata(repeated_strata);
  const double step_count = count_convolution_steps(rank_sum_strata);
  WeightedPairStrata<PairDifferences> pairs;
  std::vector<DiscreteDistribution> terms;
  double variance = 0;
  for (std::size_t stratum_index = 0; stratum_index < repeated_strata.size(); ++stratum_index) {
    const RankSumStratum& stratum = rank_sum_strata[stratum_index];
    const auto scale = static_cast<std::size_t>(stratum.weight);
    const auto weight = static_cast<double>(stratum.weight);
    pairs.add(
        PairDifferences(repeated_strata[stratum_index].first_values, repeated_strata[stratum_index].second_values),
        scale);
    variance += weight * weight * static_cast<double>(stratum.pairs() * (stratum.n1 + stratum.n2 + 1)) / 12;
    if (step_count <= kMaxExactConvolutionSteps)
      terms.push_back(make_rank_sum_distribution(count_rank_sums(stratum.n1, stratum.n2, stratum.pairs()), scale));
  }
  return estimate_stratified_shift(pairs, terms, step_count, variance, confidence);
}

StrataConsistency compute_strata_consistency(std::span<const double> effects, double confidence) {
  StrataConsistency result;
  for (const double effect : effects)
    ++(effect > 0 ? result.higher_count : effect < 0 ? result.lower_count : result.equal_count);
  result.signed_rank_result = signed_rank_test(effects);
  if (const std::size_t nonzero_count = result.higher_count + result.lower_count; nonzero_count > 0) {
    const boost::math::binomial_distribution<> signs(static_cast<double>(nonzero_count), 0.5);
    result.sign_test_p = std::min(
        1.0, 2 * boost::math::cdf(signs, static_cast<double>(std::min(result.higher_count, result.lower_count))));
  }
  const std::vector<double> zeros(effects.size());
  result.shift = paired_shift(effects, zeros, confidence);
  return result;
}

TestResult qualitative_interaction_test(std::span<const double> effects, std::span<const double> standard_errors,
                                        double degrees_of_freedom) {
  JOULEMAP_CHECK(effects.size() == standard_errors.size(), "each effect has a standard error");
  double positive_square_sum = 0;
  double negative_square_sum = 0;
  for (std::size_t effect_index = 0; effect_index < effects.size(); ++effect_index) {
    if (effects[effect_index] == 0) continue;
    const double z = effects[effect_index] / standard_errors[effect_index];
    (z > 0 ? positive_square_sum : negative_square_sum) += z * z;
  }
  TestResult result{std::min(positive_square_sum, negative_square_sum), 1, effects.size(), PValueMethod::f};
  if (!(result.statistic > 0) || !(degrees_of_freedom > 0)) return result;
  const boost::math::binomial_distribution<> signs(static_cast<double>(effects.size() - 1), 0.5);
  result.p = 0;
  for (std::size_t sign_count = 1; sign_count < effects.size(); ++sign_count) {
    const auto count = static_cast<double>(sign_count);
    result.p +=
        boost::math::pdf(signs, count) * f_distribution_tail(result.statistic / count, count, degrees_of_freedom);
  }
  return result;
}

}  // namespace joulemap::statistics
