// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/separable_groups.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace joulemap::attribution {
namespace {

// The data confuse two unknowns if the correlation of their errors is below this. An unknown that the data identify is
// merged with another only at a stronger negative correlation.
constexpr double kMaxErrorCorrelation = -0.1;
constexpr double kMaxErrorCorrelationWithKnown = -0.5;

constexpr double kCommonLevelPrecision =
    1e-4;  // precision of the prior of the common level, relative to that of a class
constexpr double kMinDifferenceVariance = 1e-9;

struct Posterior {
  std::vector<double> unscaled_covariance;
  std::vector<double> data_fractions;
};

Posterior solve_posterior(const statistics::NormalEquations& sums, double precision) {
  const std::vector<statistics::Prior> priors(sums.size(), statistics::Prior{0, precision});
  Posterior posterior{statistics::unscaled_posterior_covariance(sums, priors), {}};
  for (std::size_t i = 0; i < sums.size(); ++i)
    posterior.data_fractions.push_back(1 - precision * posterior.unscaled_covariance[i * sums.size() + i]);
  return posterior;
}

SeparableGroups make_separable_groups(const statistics::NormalEquations& sums, double precision,
                                      std::vector<std::size_t> group_indices,
                                      std::vector<double> identified_fractions) {
  const std::size_t count = 1 + *std::max_element(group_indices.begin(), group_indices.end());
  Posterior posterior = solve_posterior(sums.with_grouped_unknowns(group_indices, count), precision);
  return {std::move(group_indices), count, std::move(posterior.data_fractions), std::move(identified_fractions)};
}

// The pair whose errors are most anti-correlated, so that one gains what the other loses; empty if no pair is confused.
// At least one of the pair is not identified by the data.
std::optional<std::pair<std::size_t, std::size_t>> find_most_anticorrelated_pair(const Posterior& posterior,
                                                                                 std::size_t idle) {
  const std::size_t size = posterior.data_fractions.size();
  const auto is_known = [&](std::size_t i) { return posterior.data_fractions[i] >= kMinIdentifiedFraction; };
  std::optional<std::pair<std::size_t, std::size_t>> anticorrelated_pair;
  double lowest_correlation = 0;
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = i + 1; j < size; ++j) {
      if (is_known(i) && is_known(j)) continue;
      if ((i == idle && is_known(i)) || (j == idle && is_known(j))) continue;
      const double correlation =
          posterior.unscaled_covariance[i * size + j] /
          std::sqrt(posterior.unscaled_covariance[i * size + i] * posterior.unscaled_covariance[j * size + j]);
      if (correlation >= (is_known(i) || is_known(j) ? kMaxErrorCorrelationWithKnown : kMaxErrorCorrelation) ||
          correlation >= lowest_correlation)
        continue;
      lowest_correlation = correlation;
      anticorrelated_pair = {i, j};
    }
  }
  return anticorrelated_pair;
}

// By unknown: by how much the data reduce the variance of its deviation from the time-weighted mean of all classes. The
// mean itself gets a weak prior, because it carries no information on differences.
std::vector<double> identified_difference_fractions(const statistics::NormalEquations& sums, double precision,
                                                    std::span<const double> times_s,
                                                    const std::vector<double>& own_fractions) {
  const std::size_t classes = sums.size() - 1;
  std::vector<statistics::Prior> priors(sums.size() + 1, statistics::Prior{0, precision});
  priors.back().precision = precision * kCommonLevelPrecision;
  const std::vector<double> unscaled_covariance =
      statistics::unscaled_posterior_covariance(sums.with_shared_mean_unknown(classes), priors);
  double total_time_s = 0;
  for (std::size_t k = 0; k < classes; ++k) total_time_s += times_s[k];
  std::vector<double> identified_fractions = own_fractions;
  for (std::size_t k = 0; k < classes && total_time_s > 0; ++k) {
    std::vector<double> difference(classes);
    for (std::size_t j = 0; j < classes; ++j) difference[j] = (j == k ? 1 : 0) - times_s[j] / total_time_s;
    double prior_variance = 0;
    double posterior_variance = 0;
    for (std::size_t i = 0; i < classes; ++i) {
      prior_variance += difference[i] * difference[i] / precision;
      for (std::size_t j = 0; j < classes; ++j)
        posterior_variance += difference[i] * difference[j] * unscaled_covariance[i * priors.size() + j];
    }
    // With only one class its deviation from the mean is 0, and after / before would be 0 / 0.
    if (prior_variance * precision > kMinDifferenceVariance)
      identified_fractions[k] = std::min(own_fractions[k], 1 - posterior_variance / prior_variance);
  }
  return identified_fractions;
}

}  // namespace

SeparableGroups find_separable_groups(const statistics::NormalEquations& sums, double precision,
                                      std::span<const double> times_s) {
  SeparableGroups result;
  for (std::size_t i = 0; i < sums.size(); ++i) result.group_by_unknown.push_back(i);
  result.group_count = sums.size();
  Posterior posterior = solve_posterior(sums, precision);
  result.identified_fractions = identified_difference_fractions(sums, precision, times_s, posterior.data_fractions);
  while (const std::optional<std::pair<std::size_t, std::size_t>> pair = find_most_anticorrelated_pair(
             posterior, result.group_by_unknown.empty() ? 0 : result.group_by_unknown.back())) {
    for (std::size_t& group : result.group_by_unknown) {
      if (group == pair->second) group = pair->first;
      if (group > pair->second) --group;
    }
    --result.group_count;
    posterior = solve_posterior(sums.with_grouped_unknowns(result.group_by_unknown, result.group_count), precision);
  }
  result.data_fractions = posterior.data_fractions;
  return result;
}

SeparableGroups find_groups_with_sensor_uncertainty(const statistics::NormalEquations& sums, double precision,
                                                    std::span<const double> times_s,
                                                    std::span<const double> sensor_variance) {
  SeparableGroups separable_groups = find_separable_groups(sums, precision, times_s);
  const std::size_t classes = separable_groups.group_by_unknown.size() - 1;
  std::vector<bool> is_uncertain(separable_groups.group_count);
  bool has_identified_group = false;
  for (std::size_t k = 0; k < separable_groups.identified_fractions.size() && !sensor_variance.empty(); ++k) {
    const bool was_identified = separable_groups.identified_fractions[k] >= kMinIdentifiedFraction;
    separable_groups.identified_fractions[k] =
        std::max(separable_groups.identified_fractions[k] - sensor_variance[k], 0.0);
    if (k < classes && was_identified && separable_groups.identified_fractions[k] < kMinIdentifiedFraction)
      is_uncertain[separable_groups.group_by_unknown[k]] = true;
  }
  for (std::size_t k = 0; k < classes; ++k)
    has_identified_group = has_identified_group || separable_groups.identified_fractions[k] >= kMinIdentifiedFraction;
  if (!has_identified_group) {
    std::vector<std::size_t> merged_groups(classes + 1, 0);
    merged_groups.back() = separable_groups.identified_fractions.back() >= kMinIdentifiedFraction ? 1 : 0;
    return make_separable_groups(sums, precision, std::move(merged_groups),
                                 std::move(separable_groups.identified_fractions));
  }
  const auto first_uncertain_group = std::find(is_uncertain.begin(), is_uncertain.end(), true);
  if (first_uncertain_group == is_uncertain.end()) return separable_groups;
  is_uncertain[separable_groups.group_by_unknown.back()] = false;
  // Renumber groups in order of their first members.
  std::vector<std::size_t> number(separable_groups.group_count + 1, separable_groups.group_count + 1);
  std::size_t next_group = 0;
  std::vector<std::size_t> group_indices;
  for (const std::size_t group : separable_groups.group_by_unknown) {
    std::size_t& new_group = number[is_uncertain[group] ? separable_groups.group_count : group];
    if (new_group > separable_groups.group_count) new_group = next_group++;
    group_indices.push_back(new_group);
  }
  return make_separable_groups(sums, precision, std::move(group_indices),
                               std::move(separable_groups.identified_fractions));
}

}  // namespace joulemap::attribution
