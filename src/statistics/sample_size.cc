// SPDX-License-Identifier: Apache-2.0
#include "statistics/sample_size.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "statistics/random.h"
#include "statistics/rank_distributions.h"
#include "statistics/rank_tests.h"

namespace joulemap::statistics {

namespace {

std::vector<double> draw_sample(Random& random, std::size_t n, double centre, double noise) {
  std::vector<double> values(n);
  for (double& value : values) value = centre + noise * random.normal();
  return values;
}

// The smaller of W+ and W- (paired), or of both groups' U (unpaired), for values without ties: the test rejects small
// ones.
double smaller_rank_sum(Pairing pairing, std::span<const double> first_values, std::span<const double> second_values) {
  const auto n = static_cast<double>(first_values.size());
  if (pairing == Pairing::paired) {
    const double positive_rank_sum = signed_rank_sum(first_values, second_values);
    return std::min(positive_rank_sum, n * (n + 1) / 2 - positive_rank_sum);
  }
  const double u = rank_sum_u(first_values, second_values);
  return std::min(u, n * n - u);
}

}  // namespace

double min_p_value_paired(std::size_t pairs) { return std::min(1.0, std::exp2(1 - static_cast<double>(pairs))); }

double min_p_value_unpaired(std::size_t first_size, std::size_t second_size) {
  return std::min(1.0, 2 / binomial_coefficient(first_size + second_size, first_size));
}

double min_p_value(Pairing pairing, std::size_t n) {
  return pairing == Pairing::paired ? min_p_value_paired(n) : min_p_value_unpaired(n, n);
}

std::size_t min_repetitions(Pairing pairing, double alpha, std::size_t comparisons) {
  std::size_t n = 1;
  while (min_p_value(pairing, n) * static_cast<double>(comparisons) > alpha && n < 1'000) ++n;
  return n;
}

double simulate_test_power(Pairing pairing, std::size_t n, const TargetDifference& target, std::uint64_t seed,
                           std::size_t trials) {
  // Drawn values have no ties, so all trials have the same critical sum.
  const double tail_probability = target.alpha / static_cast<double>(target.comparisons) / 2;
  const auto critical = pairing == Pairing::paired ? signed_rank_critical_value(n, tail_probability)
                                                   : rank_sum_critical_value(n, n, tail_probability);
  if (!critical || trials == 0) return 0;
  Random random(seed);
  std::size_t detection_count = 0;
  for (std::size_t trial = 0; trial < trials; ++trial) {
    const std::vector<double> first_values = draw_sample(random, n, 1 + target.difference, target.noise_sd);
    const std::vector<double> second_values = draw_sample(random, n, 1, target.noise_sd);
    if (smaller_rank_sum(pairing, first_values, second_values) <= static_cast<double>(critical->critical_sum))
      ++detection_count;
  }
  return static_cast<double>(detection_count) / static_cast<double>(trials);
}

std::optional<std::size_t> find_needed_repetitions(Pairing pairing, const TargetDifference& target, double power,
                                                   std::uint64_t seed, std::size_t limit) {
  const auto has_enough_power = [&](std::size_t n) { return simulate_test_power(pairing, n, target, seed) >= power; };
  std::size_t low = min_repetitions(pairing, target.alpha, target.comparisons);
  std::size_t high = low;
  while (high < limit && !has_enough_power(high)) {
    low = high + 1;
    high = std::min(limit, 2 * high);
  }
  if (high > limit || !has_enough_power(high)) return std::nullopt;
  while (low < high) {
    const std::size_t midpoint = low + (high - low) / 2;
    if (has_enough_power(midpoint)) {
      high = midpoint;
    } else {
      low = midpoint + 1;
    }
  }
  return high;
}

}  // namespace joulemap::statistics
