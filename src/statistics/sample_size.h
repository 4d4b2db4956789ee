// SPDX-License-Identifier: Apache-2.0
//
// Power analysis: what a number of repetitions can and cannot show, before they are run. Pure; any thread; same seed,
// same result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace joulemap::statistics {

enum class Pairing { paired, unpaired };  // signed-rank test of n pairs; rank-sum test of n against n

// The smallest p that the exact test can give, however large the difference: 2 / 2^n for n pairs, 2 / C(n1 + n2, n1)
// for independent groups; at most 1.
double min_p_value_paired(std::size_t pairs);
double min_p_value_unpaired(std::size_t first_size, std::size_t second_size);
double min_p_value(Pairing pairing, std::size_t n);

// The smallest n, from 1 to 1000, at which one of `comparisons` can be significant: min_p_value x comparisons <= alpha,
// as Bonferroni and the first step of Holm require. 1000 if even that is too small.
std::size_t min_repetitions(Pairing pairing, double alpha, std::size_t comparisons = 1);

// A difference to detect. `difference` and `noise_sd` (a standard deviation) are fractions of the value: 0.03 and 0.01
// mean 3 % at 1 % noise. Noise is normal and independent for each value. It excludes variation that both values of a
// pair share, which cancels.
struct TargetDifference {
  double difference = 0;
  double noise_sd = 0;
  double alpha = 0.05;
  std::size_t comparisons = 1;  // number of comparisons for Bonferroni
};

// Fraction of `trials` simulated experiments with n repetitions that detect the difference; 0 if n is too small for any
// p <= alpha / comparisons.
double simulate_test_power(Pairing pairing, std::size_t n, const TargetDifference& target, std::uint64_t seed = 1,
                           std::size_t trials = 1'000);
// The smallest n up to `limit` with a simulate_test_power() of at least `power`; nothing where even `limit` is too
// small.
std::optional<std::size_t> find_needed_repetitions(Pairing pairing, const TargetDifference& target, double power = 0.9,
                                                   std::uint64_t seed = 1, std::size_t limit = 200);

}  // namespace joulemap::statistics
