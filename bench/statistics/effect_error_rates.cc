// SPDX-License-Identifier: Apache-2.0
//
// Error rates of effects over all combinations of factors: build/bin/effect_error_rates [EXPERIMENTS]
//
// Each simulated experiment compares two frameworks in combinations of model and batch, with 3 % noise on every value.
// In "none" nothing differs; in "common" one framework uses 5 % more everywhere; in "mixed" every combination has its
// own effect, with a standard deviation of 10 % and a mean of 0. Prints the fraction of experiments that claim a general
// effect, that claim different directions, and whose interval covers the mean effect (docs/explanation/statistics.md).
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "experiment/analysis/experiment_table.h"
#include "experiment/analysis/main_effects.h"
#include "experiment/analysis/synthetic_experiment.h"
#include "statistics/random.h"

using namespace joulemap;
using namespace joulemap::experiment;

namespace {

struct TrueEffect {
  std::string_view name;
  double effect = 0;  // mean of the logarithms of the ratios
  double spread = 0;  // their standard deviation between combinations
};

void print_rates(const FactorialDesign& design, const TrueEffect& truth, std::size_t experiments) {
  std::size_t general = 0;
  std::size_t direction_differs_count = 0;
  std::size_t coverage_count = 0;
  for (std::uint64_t seed = 1; seed <= experiments; ++seed) {
    statistics::Random random(1'000'000 + seed);
    std::vector<double> effects(design.model_count * design.batch_count);
    for (double& combination_effect : effects) combination_effect = truth.effect + truth.spread * random.normal();
    const ExperimentData data = make_synthetic_factorial(seed, design, [&](std::size_t model, std::size_t batch) {
      return effects[model * design.batch_count + batch];
    });
    const ExperimentTable table = *make_experiment_table(data, std::vector<std::string>{"energy_j"});
    const MainEffect effect =
        analyze_factor_effects(data, table, {.factors = {0}, .thread_count = 1}).main_effects.front();
    general += effect.generality == EffectGenerality::same_direction ? 1 : 0;
    direction_differs_count += effect.generality == EffectGenerality::direction_differs ? 1 : 0;
    const double percent = 100 * std::expm1(-truth.effect);
    coverage_count += *effect.percent_low <= percent && percent <= *effect.percent_high ? 1 : 0;
  }
  const auto percent = [&](std::size_t count) {
    return 100 * static_cast<double>(count) / static_cast<double>(experiments);
  };
  fmt::print("| {} | {} | {} | {} | {:.1f} % | {:.1f} % | {:.1f} % |\n", design.is_blocked ? "blocked" : "not blocked",
             design.model_count * design.batch_count, design.repetitions, truth.name, percent(general),
             percent(direction_differs_count), percent(coverage_count));
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t experiments = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000;
  fmt::print("| design | combinations | repetitions | truth | general | directions differ | covered |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (const bool is_blocked : {true, false}) {
    for (const FactorialDesign& design :
         {FactorialDesign{.is_blocked = is_blocked}, FactorialDesign{.repetitions = 5, .is_blocked = is_blocked},
          FactorialDesign{.model_count = 2, .batch_count = 2, .repetitions = 5, .is_blocked = is_blocked}}) {
      for (const TrueEffect& truth :
           {TrueEffect{"none"}, TrueEffect{"common", std::log(1.05), 0}, TrueEffect{"mixed", 0, 0.1}})
        print_rates(design, truth, experiments);
    }
  }
  return 0;
}
