// SPDX-License-Identifier: Apache-2.0
#include "statistics/effect_size.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/check.h"
#include "statistics/pairwise_counts.h"
#include "statistics/rank_distributions.h"
#include "statistics/rank_tests.h"

namespace joulemap::statistics {

namespace {

std::optional<std::vector<double>> compute_logarithms(std::span<const double> values) {
  std::vector<double> logarithms;
  for (const double value : values) {
    if (!(value > 0)) return std::nullopt;
    logarithms.push_back(std::log(value));
  }
  return logarithms;
}

EffectEstimate to_percent(const EffectEstimate& log_shift) {
  return {100 * std::expm1(log_shift.estimate), 100 * std::expm1(log_shift.low), 100 * std::expm1(log_shift.high),
          log_shift.confidence};
}

using EffectFunction = std::optional<EffectEstimate>(std::span<const double>, std::span<const double>, double);

std::optional<EffectEstimate> percent_shift(EffectFunction shift, std::span<const double> first_values,
                                            std::span<const double> second_values, double confidence) {
  const auto log_first = compute_logarithms(first_values);
  const auto log_second = compute_logarithms(second_values);
  if (!log_first || !log_second) return std::nullopt;
  const std::optional<EffectEstimate> log_shift = shift(*log_first, *log_second, confidence);
  if (!log_shift) return std::nullopt;
  return to_percent(*log_shift);
}

// Variance of an estimated A12 with true value `a12`, for exponentially distributed values; other distributions hardly
// exceed it.
double a12_variance(double a12, double n1, double n2) {
  const double variance_term = (1 - a12) / (2 - a12) + a12 / (1 + a12);
  return a12 * (1 - a12) * (1 + ((n1 + n2) / 2 - 1) * variance_term) / (n1 * n2);
}

// A bound of the interval: the true value between the estimate and `end` (0 or 1) from which the estimate is exactly z
// standard errors away.
double a12_confidence_bound(double estimate, double end, double z, double n1, double n2) {
  double inner_bound = estimate;
  double outer_bound = end;
  for (int i = 0; i < 100; ++i) {
    const double midpoint = (inner_bound + outer_bound) / 2;
    const double distance = midpoint - estimate;
    (distance * distance <= z * z * a12_variance(midpoint, n1, n2) ? inner_bound : outer_bound) = midpoint;
  }
  return inner_bound;
}

}  // namespace

std::optional<EffectEstimate> a12_interval(std::span<const double> first_values, std::span<const double> second_values,
                                           double confidence) {
  if (first_values.empty() || second_values.empty()) return std::nullopt;
  const double estimate = vargha_delaney_a12(first_values, second_values);
  const double z = normal_quantile((1 + confidence) / 2);
  const auto n1 = static_cast<double>(first_values.size());
  const auto n2 = static_cast<double>(second_values.size());
  return EffectEstimate{estimate, a12_confidence_bound(estimate, 0, z, n1, n2),
                        a12_confidence_bound(estimate, 1, z, n1, n2), confidence};
}

double vargha_delaney_a12(std::span<const double> first_values, std::span<const double> second_values) {
  if (first_values.empty() || second_values.empty()) return 0.5;
  return rank_sum_u(first_values, second_values) /
         (static_cast<double>(first_values.size()) * static_cast<double>(second_values.size()));
}

double cliffs_delta(std::span<const double> first_values, std::span<const double> second_values) {
  return 2 * vargha_delaney_a12(first_values, second_values) - 1;
}

std::string_view cliffs_delta_magnitude(double delta) {
  const double size = std::abs(delta);
  return size < 0.147 ? "negligible" : size < 0.33 ? "small" : size < 0.474 ? "medium" : "large";
}

std::optional<EffectEstimate> paired_shift(std::span<const double> first_values, std::span<const double> second_values,
                                           double confidence) {
  std::vector<double> differences = paired_differences(first_values, second_values);
  if (differences.empty()) return std::nullopt;
  const std::size_t n = differences.size();
  const EffectEstimate sums =
      estimate_shift(PairSums(std::move(differences)), signed_rank_critical_value(n, (1 - confidence) / 2),
                     std::exp2(-static_cast<double>(n)));
  return EffectEstimate{sums.estimate / 2, sums.low / 2, sums.high / 2, sums.confidence};
}

std::optional<EffectEstimate> unpaired_shift(std::span<const double> first_values,
                                             std::span<const double> second_values, double confidence) {
  if (first_values.empty() || second_values.empty()) return std::nullopt;
  const double least_tail = 1 / binomial_coefficient(first_values.size() + second_values.size(), first_values.size());
  return estimate_shift(PairDifferences(first_values, second_values),
                        rank_sum_critical_value(first_values.size(), second_values.size(), (1 - confidence) / 2),
                        least_tail);
}

std::optional<EffectEstimate> paired_percent(std::span<const double> first_values,
                                             std::span<const double> second_values, double confidence) {
  return percent_shift(paired_shift, first_values, second_values, confidence);
}

std::optional<EffectEstimate> unpaired_percent(std::span<const double> first_values,
                                               std::span<const double> second_values, double confidence) {
  return percent_shift(unpaired_shift, first_values, second_values, confidence);
}

}  // namespace joulemap::statistics
