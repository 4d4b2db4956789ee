// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/level_correlations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "experiment/analysis/synthetic_experiment.h"

namespace joulemap::experiment {
namespace {

// Energy follows time with the first framework, and is the inverse of it with the second.
std::vector<LevelCorrelation> correlations(std::size_t model_count) {
  FactorialDesign design{.model_count = model_count, .batch_count = 1, .noise = 0};
  ExperimentData data = make_synthetic_factorial(1, design, [](auto, auto) { return 0.1; });
  data.metrics = {{"accuracy", "", true}};
  for (ExperimentRow& row : data.rows) {
    const auto size = static_cast<double>(1 + row.levels[1]);
    row.domains = {make_domain_energy("gpu0", 100 * size), make_domain_energy("package-0", 50 + size)};
    row.elapsed_s = row.levels[0] == 0 ? 10 * size : 100 / size;
    row.metrics = {0.5};
  }
  return level_correlations(data, *make_experiment_table(data, {}), {0});
}

TEST(LevelCorrelations, CorrelationsAreOfEachDomainAndLevelWithTimeAndPower) {
  const std::vector<LevelCorrelation> computed_correlations = correlations(5);
  const auto spearman = [&](std::optional<std::size_t> level, std::size_t energy, std::string_view y) {
    const auto matching_correlation =
        std::ranges::find_if(computed_correlations, [&](const LevelCorrelation& correlation) {
          return correlation.level == level && correlation.x == energy && correlation.y == y;
        });
    return matching_correlation == computed_correlations.end()
               ? std::nullopt
               : std::optional(std::round(1e9 * matching_correlation->spearman) / 1e9);
  };
  for (std::size_t energy = 0; energy < 3; ++energy) {  // total, gpu, package
    EXPECT_EQ(spearman(0, energy, "time_s"), 1);
    EXPECT_EQ(spearman(1, energy, "time_s"), -1);
    EXPECT_EQ(spearman(1, energy, "power_w"), 1);
    EXPECT_FALSE(spearman(0, energy, "accuracy")) << "no spread";
  }
  EXPECT_EQ(computed_correlations.front().n, 10U) << "over all cells, each counted once";
}

TEST(LevelCorrelations, CorrelationsNeedFourCells) {
  const auto computed_correlations = correlations(3);
  ASSERT_FALSE(computed_correlations.empty());
  for (const LevelCorrelation& correlation : computed_correlations) EXPECT_FALSE(correlation.level);
}

}  // namespace
}  // namespace joulemap::experiment
