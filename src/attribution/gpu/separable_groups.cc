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
  Posterior known{statistics::unscaled_posterior_covariance(sums, priors), {}};
  for (std::size_t i = 0; i < sums.size(); ++i)
    known.data_fractions.push_back(1 - precision * known.unscaled_covariance[i * sums.size() + i]);
  return known;
}

SeparableGroups make_separable_groups(const statistics::NormalEquations& sums, double precision,
                                      std::vector<std::size_t> group_indices,
                                      std::vector<double> identified_fractions) {
  const std::size_t count = 1 + *std::max_element(group_indices.begin(), group_indices.end());
  Posterior known = solve_posterior(sums.with_grouped_unknowns(group_indices, count), precision);
  return {std::move(group_indices), count, std::move(known.data_fractions), std::move(identified_fractions)};
}

// The pair whose errors are most anti-correlated, so that one gains what the other loses; empty if no pair is confused.
// At least one of the pair is not identified by the data.
std::optional<std::pair<std::size_t, std::size_t>> find_most_anticorrelated_pair(const Posterior& known,
                                                                                 std::size_t idle) {
  const std::size_t size = known.data_fractions.size();
  const auto is_known = [&](std::size_t i) { return known.data_fractions[i] >= kMinIdentifiedFraction; };
  std::optional<std::pair<std::size_t, std::size_t>> found;
  double lowest_correlation = 0;
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = i + 1; j < size; ++j) {
      if (is_known(i) && is_known(j)) continue;
      if ((i == idle && is_known(i)) || (j == idle && is_known(j))) continue;
      const double correlation =
          known.unscaled_covariance[i * size + j] /
          std::sqrt(known.unscaled_covariance[i * size + i] * known.unscaled_covariance[j * size + j]);
      if (correlation >= (is_known(i) || is_known(j) ? kMaxErrorCorrelationWithKnown : kMaxErrorCorrelation) ||
          correlation >= lowest_correlation)
        continue;
      lowest_correlation = correlation;
      found = {i, j};
    }
  }
  return found;
}

// By unknown: by how much the data reduce the variance of its deviation from the time-weighted mean of all classes. The
// mean itself gets a weak prior, because it carries no information on differences.
std::vector<double> identified_difference_fractions(const statistics::NormalEquations& sums, double precision,
                                                    std::span<const double> times_s,
                                                    const std::vector<double>& own_fractions) {
  const std::size_t classes = sums.size() - 1;
  std::vector<statistics::Prior> priors(sums.size() + 1, statistics::Prior{0, precision});
  priors.back().precision = precision * kCommonLevelPrecision;
  const std::vector<double> inverse =
      statistics::unscaled_posterior_covariance(sums.with_shared_mean_unknown(classes), priors);
  double all_s = 0;
  for (std::size_t k = 0; k < classes; ++k) all_s += times_s[k];
  std::vector<double> known = own_fractions;
  for (std::size_t k = 0; k < classes && all_s > 0; ++k) {
    std::vector<double> difference(classes);
    for (std::size_t j = 0; j < classes; ++j) difference[j] = (j == k ? 1 : 0) - times_s[j] / all_s;
    double before = 0;
    double after = 0;
    for (std::size_t i = 0; i < classes; ++i) {
      before += difference[i] * difference[i] / precision;
      for (std::size_t j = 0; j < classes; ++j) after += difference[i] * difference[j] * inverse[i * priors.size() + j];
    }
    // With only one class its deviation from the mean is 0, and after / before would be 0 / 0.
    if (before * precision > kMinDifferenceVariance) known[k] = std::min(own_fractions[k], 1 - after / before);
  }
  return known;
}

}  // namespace

SeparableGroups find_separable_groups(const statistics::NormalEquations& sums, double precision,
                                      std::span<const double> times_s) {
  SeparableGroups result;
  for (std::size_t i = 0; i < sums.size(); ++i) result.group_by_unknown.push_back(i);
  result.group_count = sums.size();
  Posterior known = solve_posterior(sums, precision);
  result.identified_fractions = identified_difference_fractions(sums, precision, times_s, known.data_fractions);
  while (const std::optional<std::pair<std::size_t, std::size_t>> pair = find_most_anticorrelated_pair(
             known, result.group_by_unknown.empty() ? 0 : result.group_by_unknown.back())) {
    for (std::size_t& group : result.group_by_unknown) {
      if (group == pair->second) group = pair->first;
      if (group > pair->second) --group;
    }
    --result.group_count;
    known = solve_posterior(sums.with_grouped_unknowns(result.group_by_unknown, result.group_count), precision);
  }
  result.data_fractions = known.data_fractions;
  return result;
}

SeparableGroups find_groups_with_sensor_uncertainty(const statistics::NormalEquations& sums, double precision,
                                                    std::span<const double> times_s,
                                                    std::span<const double> sensor_variance) {
  SeparableGroups found = find_separable_groups(sums, precision, times_s);
  const std::size_t classes = found.group_by_unknown.size() - 1;
  std::vector<bool> is_uncertain(found.group_count);
  bool has_identified_group = false;
  for (std::size_t k = 0; k < found.identified_fractions.size() && !sensor_variance.empty(); ++k) {
    const bool was_identified = found.identified_fractions[k] >= kMinIdentifiedFraction;
    found.identified_fractions[k] = std::max(found.identified_fractions[k] - sensor_variance[k], 0.0);
    if (k < classes && was_identified && found.identified_fractions[k] < kMinIdentifiedFraction)
      is_uncertain[found.group_by_unknown[k]] = true;
  }
  for (std::size_t k = 0; k < classes; ++k)
    has_identified_group = has_identified_group || found.identified_fractions[k] >= kMinIdentifiedFraction;
  if (!has_identified_group) {
    std::vector<std::size_t> merged_groups(classes + 1, 0);
    merged_groups.back() = found.identified_fractions.back() >= kMinIdentifiedFraction ? 1 : 0;
    return make_separable_groups(sums, precision, std::move(merged_groups), std::move(found.identified_fractions));
  }
  const auto first = std::find(is_uncertain.begin(), is_uncertain.end(), true);
  if (first == is_uncertain.end()) return found;
  is_uncertain[found.group_by_unknown.back()] = false;
  // Renumber groups in order of their first members.
  std::vector<std::size_t> number(found.group_count + 1, found.group_count + 1);
  std::size_t next = 0;
  std::vector<std::size_t> group_indices;
  for (const std::size_t group : found.group_by_unknown) {
    std::size_t& new_group = number[is_uncertain[group] ? found.group_count : group];
    if (new_group > found.group_count) new_group = next++;
    group_indices.push_back(new_group);
  }
  return make_separable_groups(sums, precision, std::move(group_indices), std::move(found.identified_fractions));
}

}  // namespace joulemap::attribution
