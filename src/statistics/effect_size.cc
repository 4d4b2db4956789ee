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

std::optional<EffectEstimate> percent_shift(EffectFunction shift, std::span<const double> first,
                                            std::span<const double> second, double confidence) {
  const auto log_first = compute_logarithms(first);
  const auto log_second = compute_logarithms(second);
  if (!log_first || !log_second) return std::nullopt;
  const std::optional<EffectEstimate> log_shift = shift(*log_first, *log_second, confidence);
  if (!log_shift) return std::nullopt;
  return to_percent(*log_shift);
}

// Variance of an estimated A12 with true value `a`, for exponentially distributed values; other distributions hardly
// exceed it.
double a12_variance(double a, double n1, double n2) {
  const double spread = (1 - a) / (2 - a) + a / (1 + a);
  return a * (1 - a) * (1 + ((n1 + n2) / 2 - 1) * spread) / (n1 * n2);
}

// A bound of the interval: the true value between the estimate and `end` (0 or 1) from which the estimate is exactly z
// standard errors away.
double a12_confidence_bound(double estimate, double end, double z, double n1, double n2) {
  double near = estimate;
  double far = end;
  for (int i = 0; i < 100; ++i) {
    const double midpoint = (near + far) / 2;
    const double distance = midpoint - estimate;
    (distance * distance <= z * z * a12_variance(midpoint, n1, n2) ? near : far) = midpoint;
  }
  return near;
}

}  // namespace

std::optional<EffectEstimate> a12_interval(std::span<const double> first, std::span<const double> second,
                                           double confidence) {
  if (first.empty() || second.empty()) return std::nullopt;
  const double estimate = vargha_delaney_a12(first, second);
  const double z = normal_quantile((1 + confidence) / 2);
  const auto n1 = static_cast<double>(first.size());
  const auto n2 = static_cast<double>(second.size());
  return EffectEstimate{estimate, a12_confidence_bound(estimate, 0, z, n1, n2),
                        a12_confidence_bound(estimate, 1, z, n1, n2), confidence};
}

double vargha_delaney_a12(std::span<const double> first, std::span<const double> second) {
  if (first.empty() || second.empty()) return 0.5;
  return rank_sum_u(first, second) / (static_cast<double>(first.size()) * static_cast<double>(second.size()));
}

double cliffs_delta(std::span<const double> first, std::span<const double> second) {
  return 2 * vargha_delaney_a12(first, second) - 1;
}

std::string_view cliffs_delta_magnitude(double delta) {
  const double size = std::abs(delta);
  return size < 0.147 ? "negligible" : size < 0.33 ? "small" : size < 0.474 ? "medium" : "large";
}

std::optional<EffectEstimate> paired_shift(std::span<const double> first, std::span<const double> second,
                                           double confidence) {
  std::vector<double> differences = paired_differences(first, second);
  if (differences.empty()) return std::nullopt;
  const std::size_t n = differences.size();
  const EffectEstimate sums =
      estimate_shift(PairSums(std::move(differences)), signed_rank_critical_value(n, (1 - confidence) / 2),
                     std::exp2(-static_cast<double>(n)));
  return EffectEstimate{sums.estimate / 2, sums.low / 2, sums.high / 2, sums.confidence};
}

std::optional<EffectEstimate> unpaired_shift(std::span<const double> first, std::span<const double> second,
                                             double confidence) {
  if (first.empty() || second.empty()) return std::nullopt;
  const double least_tail = 1 / binomial_coefficient(first.size() + second.size(), first.size());
  return estimate_shift(PairDifferences(first, second),
                        rank_sum_critical_value(first.size(), second.size(), (1 - confidence) / 2), least_tail);
}

std::optional<EffectEstimate> paired_percent(std::span<const double> first, std::span<const double> second,
                                             double confidence) {
  return percent_shift(paired_shift, first, second, confidence);
}

std::optional<EffectEstimate> unpaired_percent(std::span<const double> first, std::span<const double> second,
                                               double confidence) {
  return percent_shift(unpaired_shift, first, second, confidence);
}

}  // namespace joulemap::statistics
