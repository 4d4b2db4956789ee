// SPDX-License-Identifier: Apache-2.0
//
// Error rates of a family of comparisons: build/bin/statistics_error_rates [EXPERIMENTS [SEED]]
//
// Each simulated experiment compares two treatments in a number of cells, ten repetitions each. Every value has 1 %
// noise; in paired designs the values of a block share another 5 %. Holm adjustment over the family, alpha 0.05.
// "nothing differs": fraction of experiments with any false positive, which alpha bounds. "3 % in one cell", "in all":
// fraction of true differences that are found. Exits with 1 when false positives exceed alpha + 2 standard errors, or
// when less than 90 % are found although the number of repetitions suffices (docs/explanation/statistics.md).
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "statistics/adjustment.h"
#include "statistics/random.h"
#include "statistics/rank_tests.h"
#include "statistics/sample_size.h"

using namespace joulemap::statistics;

namespace {

constexpr std::size_t kRepetitions = 10;
constexpr double kAlpha = 0.05;
constexpr double kRunRelativeSd = 0.01;
constexpr double kBlockRelativeSd = 0.05;
constexpr double kTrueDifference = 0.03;

double simulate_cell_p(Random& random, Pairing pairing, double difference) {
  std::vector<double> first_values;
  std::vector<double> second_values;
  for (std::size_t i = 0; i < kRepetitions; ++i) {
    const double block = pairing == Pairing::paired ? 1 + kBlockRelativeSd * random.normal() : 1;
    first_values.push_back(1000 * block * (1 + difference) * (1 + kRunRelativeSd * random.normal()));
    second_values.push_back(1000 * block * (1 + kRunRelativeSd * random.normal()));
  }
  return (pairing == Pairing::paired ? signed_rank_test(first_values, second_values)
                                     : rank_sum_test(first_values, second_values))
      .p;
}

struct Rates {
  double familywise_error_rate = 0;  // fraction of experiments with a false positive
  double detection_rate = 0;         // fraction of the true differences
};

Rates simulate_rates(Random& random, Pairing pairing, std::size_t family, std::size_t differing_cell_count,
                     std::size_t experiments) {
  std::size_t false_positive_runs = 0;
  std::size_t detection_count = 0;
  for (std::size_t i = 0; i < experiments; ++i) {
    std::vector<double> p_values;
    for (std::size_t cell = 0; cell < family; ++cell) {
      p_values.push_back(simulate_cell_p(random, pairing, cell < differing_cell_count ? kTrueDifference : 0));
    }
    const std::vector<double> p_adjusted = adjusted_p_values(p_values, Adjustment::holm);
    bool has_false_positive = false;
    for (std::size_t cell = 0; cell < family; ++cell) {
      if (p_adjusted[cell] > kAlpha) continue;
      detection_count += cell < differing_cell_count ? 1 : 0;
      has_false_positive = has_false_positive || cell >= differing_cell_count;
    }
    false_positive_runs += has_false_positive ? 1 : 0;
  }
  const auto n = static_cast<double>(experiments);
  return {
      static_cast<double>(false_positive_runs) / n,
      static_cast<double>(detection_count) / n / static_cast<double>(std::max<std::size_t>(differing_cell_count, 1))};
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t experiments = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const double bound = kAlpha + 2 * std::sqrt(kAlpha * (1 - kAlpha) / static_cast<double>(experiments));
  Random random(seed);
  bool are_rates_acceptable = true;
  fmt::print("{} experiments, n = {}, noise 1 %, Holm, seed {}; false calls may be {:.1f} %\n\n", experiments,
             kRepetitions, seed, 100 * bound);
  fmt::print(
      "| design | comparisons | nothing differs: any called | 3 % in one cell: found | 3 % in all: found "
      "|\n|---|---|---|---|---|\n");
  for (const Pairing pairing : {Pairing::paired, Pairing::unpaired}) {
    for (const std::size_t family : {1U, 6U, 12U, 24U}) {
      const Rates null_rates = simulate_rates(random, pairing, family, 0, experiments);
      const Rates single_effect_rates = simulate_rates(random, pairing, family, 1, experiments);
      const Rates all_effects_rates = simulate_rates(random, pairing, family, family, experiments);
      fmt::print("| {} | {} | {:.1f} % | {:.1f} % | {:.1f} % |\n", pairing == Pairing::paired ? "paired" : "unpaired",
                 family, 100 * null_rates.familywise_error_rate, 100 * single_effect_rates.detection_rate,
                 100 * all_effects_rates.detection_rate);
      // Among 24 comparisons of ten pairs, a single difference is found only when all ten pairs agree.
      const bool is_rate_reachable = pairing == Pairing::unpaired || family <= 12;
      are_rates_acceptable = are_rates_acceptable && null_rates.familywise_error_rate <= bound &&
                             all_effects_rates.detection_rate >= 0.9 &&
                             (!is_rate_reachable || single_effect_rates.detection_rate >= 0.9);
    }
  }
  return are_rates_acceptable ? 0 : 1;
}
