// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/main_effects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "experiment/analysis/analyze.h"
#include "experiment/analysis/effect_verdict.h"
#include "experiment/analysis/synthetic_experiment.h"
#include "statistics/random.h"

namespace joulemap::experiment {
namespace {

AnalysisResult analyze_energy(const ExperimentData& data, std::vector<std::string> factors = {}) {
  Result<AnalysisResult> result = analyze(
      data,
      {.compared_factors = std::move(factors), .measure_names = {"energy_j"}, .resample_count = 10, .thread_count = 1});
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

FactorEffects analyze_effects(const ExperimentData& data) {
  const ExperimentTable table = *make_experiment_table(data, std::vector<std::string>{"energy_j"});
  return analyze_factor_effects(data, table, {.factors = {0}, .thread_count = 1});
}

double constant_log_ratio(std::size_t, std::size_t) { return std::log(1.32); }

class FactorEffectsTest : public testing::TestWithParam<bool> {};

TEST_P(FactorEffectsTest, FactorEffectsAreFoundInManyCombinationsOfTwoRepetitionsEach) {
  const AnalysisResult result =
      analyze_energy(make_synthetic_factorial(1, {.is_blocked = GetParam()}, constant_log_ratio));
  for (const Comparison& comparison : result.comparisons) EXPECT_FALSE(comparison.is_different);
  ASSERT_EQ(result.main_effects.size(), 1U);
  const MainEffect& effect = result.main_effects[0];
  EXPECT_EQ(effect.test, GetParam() ? "stratified-signed-rank" : "van-elteren");
  EXPECT_TRUE(effect.is_exact);
  EXPECT_EQ(effect.generality, EffectGenerality::same_direction);
  EXPECT_EQ(effect.combinations, 36U);
  EXPECT_EQ(effect.lower, 36U) << "framework0 uses less";
  EXPECT_LT(effect.p_adjusted, 1e-12);
  const double truth = 100 * (1 / 1.32 - 1);
  EXPECT_NEAR(*effect.percent, truth, 1.5);
  EXPECT_LT(*effect.percent_low, truth);
  EXPECT_GT(*effect.percent_high, truth);
  EXPECT_NEAR(*effect.model_percent, *effect.percent, 1);
  EXPECT_EQ(effect.verdict.find("framework1 uses 3"), 0U) << effect.verdict;
  EXPECT_NE(effect.verdict.find("% more energy than framework0 over 36 combinations of model and batch ("),
            std::string::npos)
      << effect.verdict;
  EXPECT_NE(effect.verdict.find("higher in 36 of 36"), std::string::npos) << effect.verdict;
}

TEST_P(FactorEffectsTest, FactorEffectsStayWhenTheFirstCombinationIsRepeated) {
  ExperimentData data = make_synthetic_factorial(1, {.is_blocked = GetParam()}, constant_log_ratio);
  for (ExperimentRow& row : data.rows) {
    const bool is_first_combination = row.levels[1] == 0 && row.levels[2] == 0;
    if (row.block > 0 && !is_first_combination) row.state = ExperimentRowState::todo;
  }
  const AnalysisResult result = analyze_energy(data);
  ASSERT_EQ(result.main_effects.size(), 1U);
  EXPECT_EQ(result.main_effects[0].generality, EffectGenerality::same_direction) << result.main_effects[0].verdict;
  EXPECT_LT(result.main_effects[0].p, 1e-9);
}

TEST_P(FactorEffectsTest, ValuesOfAFailedRowDoNotChangeTheScale) {
  ExperimentData data = make_synthetic_factorial(1, {.is_blocked = GetParam()}, constant_log_ratio);
  data.rows[5].state = ExperimentRowState::failed;
  set_package_energy(data.rows[5], 0.0);
  EXPECT_TRUE(analyze_effects(data).main_effects[0].percent);
}

TEST_P(FactorEffectsTest, FactorEffectsAreNotClaimedWhereCombinationsDisagree) {
  const AnalysisResult result =
      analyze_energy(make_synthetic_factorial(2, {.is_blocked = GetParam()}, [](std::size_t model, std::size_t) {
        return model < 6 ? 0.4 : -0.2;  // higher in most combinations, and in the mean
      }));
  const MainEffect& effect = result.main_effects[0];
  EXPECT_LT(effect.p_adjusted, 0.01) << "the stratified test alone would claim it";
  EXPECT_EQ(effect.generality, EffectGenerality::direction_differs);
  EXPECT_NE(effect.verdict.find("no general effect of framework on energy: framework1 is higher than framework0 in 24 "
                                "of 36 combinations of model and batch and lower in 12"),
            std::string::npos)
      << effect.verdict;
  const auto model_interaction = std::ranges::find(result.interactions, 1U, &Interaction::other);
  ASSERT_NE(model_interaction, result.interactions.end());
  EXPECT_TRUE(model_interaction->is_different);
  EXPECT_LT(*model_interaction->rank_p, 0.001);
  EXPECT_NE(model_interaction->verdict.find("depends on model"), std::string::npos) << model_interaction->verdict;
  const auto batch_interaction = std::ranges::find(result.interactions, 2U, &Interaction::other);
  EXPECT_FALSE(batch_interaction->is_different) << batch_interaction->verdict;
}

TEST_P(FactorEffectsTest, FactorEffectsAreNotShownWhereNothingDiffers) {
  const AnalysisResult result = analyze_energy(
      make_synthetic_factorial(3, {.is_blocked = GetParam()}, [](std::size_t, std::size_t) { return 0.0; }));
  EXPECT_EQ(result.main_effects[0].generality, EffectGenerality::not_shown);
  EXPECT_EQ(result.main_effects[0].verdict.find("no effect of framework on energy shown over 36 combinations"), 0U)
      << result.main_effects[0].verdict;
}

struct VerdictRates {
  double same_direction_rate = 0;
  double direction_differs = 0;
  double stratified_p = 0;   // p < 0.05
  double coverage_rate = 0;  // the interval contains the typical ratio
};

// `effect_sd`: standard deviation of the effects of combinations around `effect`.
VerdictRates simulate_verdict_rates(std::size_t trials, const FactorialDesign& design, double effect,
                                    double effect_sd) {
  VerdictRates rates;
  const double share = 1 / static_cast<double>(trials);
  for (std::uint64_t seed = 1; seed <= trials; ++seed) {
    statistics::Random random(1'000'000 + seed);
    std::vector<double> effects(design.model_count * design.batch_count);
    for (double& combination_effect : effects) combination_effect = effect + effect_sd * random.normal();
    const ExperimentData data = make_synthetic_factorial(seed, design, [&](std::size_t model, std::size_t batch) {
      return effects[model * design.batch_count + batch];
    });
    const MainEffect main = analyze_effects(data).main_effects.front();
    rates.same_direction_rate += main.generality == EffectGenerality::same_direction ? share : 0;
    rates.direction_differs += main.generality == EffectGenerality::direction_differs ? share : 0;
    rates.stratified_p += main.p < 0.05 ? share : 0;
    const double truth = 100 * std::expm1(-effect);
    rates.coverage_rate += *main.percent_low <= truth && truth <= *main.percent_high ? share : 0;
  }
  return rates;
}

// 200 experiments: three standard errors of a rate of 0.05 are 0.046. With 1000 experiments, 2.6 % of those in which
// nothing differs claim a general effect and 2 % that directions differ; 97 % of the intervals cover the truth.
TEST_P(FactorEffectsTest, FactorEffectsHaveFalseAlarmsAtMostAtTheirLevelAndCoverTheTruth) {
  constexpr double kTolerance = 0.046;
  const VerdictRates null_rates = simulate_verdict_rates(200, {.is_blocked = GetParam()}, 0, 0);
  EXPECT_LE(null_rates.same_direction_rate, 0.05 + kTolerance);
  EXPECT_LE(null_rates.stratified_p, 0.05 + kTolerance);
  EXPECT_LE(null_rates.direction_differs, 0.05 + kTolerance);
  EXPECT_GE(null_rates.coverage_rate, 0.95 - kTolerance);
  const VerdictRates shared_effect_rates = simulate_verdict_rates(200, {.is_blocked = GetParam()}, 0.05, 0);
  EXPECT_GE(shared_effect_rates.coverage_rate, 0.95 - kTolerance);
  EXPECT_GE(shared_effect_rates.same_direction_rate, 0.99) << "5 % at 3 % noise";
}

// The stratified test alone rejects more often than its level, because every combination has an effect.
TEST_P(FactorEffectsTest, FactorEffectsAreNotClaimedWhereOnlyCombinationsHaveEffects) {
  constexpr double kTolerance = 0.046;
  const VerdictRates zero_mean_rates =
      simulate_verdict_rates(200, {.repetitions = 5, .is_blocked = GetParam()}, 0, 0.1);
  EXPECT_LE(zero_mean_rates.same_direction_rate, 0.05);
  EXPECT_GE(zero_mean_rates.direction_differs, 0.95);
  EXPECT_GE(zero_mean_rates.coverage_rate, 0.95 - kTolerance);
  const VerdictRates nonzero_mean_rates =
      simulate_verdict_rates(200, {.repetitions = 5, .is_blocked = GetParam()}, 0.1, 0.05);
  EXPECT_GE(nonzero_mean_rates.coverage_rate, 0.95 - kTolerance) << "the interval is that of the typical combination";
}

INSTANTIATE_TEST_SUITE_P(Designs, FactorEffectsTest, testing::Values(true, false),
                         [](const auto& design) { return design.param ? "Blocked" : "NotBlocked"; });

TEST(MainEffects, EffectsOfMoreThanTwoLevelsHaveATestOverAllAndOfEachPair) {
  const FactorEffects effects = analyze_effects(
      make_synthetic_factorial(4, {.framework_count = 3, .is_blocked = true}, [](auto, auto) { return 0.2; }));
  ASSERT_EQ(effects.main_effects.size(), 4U);
  EXPECT_FALSE(effects.main_effects[0].a);
  EXPECT_EQ(effects.main_effects[0].test, "mixed-model-f");
  EXPECT_LT(effects.main_effects[0].p, 1e-9);
  EXPECT_LT(*effects.main_effects[0].rank_p, 1e-9);
  EXPECT_EQ(effects.main_effects[0].family_size, 1U);
  EXPECT_EQ(effects.main_effects[1].family_size, 3U);
  EXPECT_NEAR(*effects.main_effects[2].percent, 100 * std::expm1(-0.4), 2) << "first against third level";
}

TEST(MainEffects, MainEffectsComeFromCombinationsAloneIfNothingIsRepeated) {
  const FactorEffects effects = analyze_effects(make_synthetic_factorial(5, {.repetitions = 1}, constant_log_ratio));
  const MainEffect& effect = effects.main_effects.front();
  EXPECT_EQ(effect.test, "wilcoxon-signed-rank");
  EXPECT_EQ(effect.n, 36U);
  EXPECT_FALSE(effect.direction_p) << "no repetitions, no noise to compare with";
  EXPECT_EQ(effect.generality, EffectGenerality::same_direction);
}

TEST(MainEffects, MainEffectsCountOnlyCombinationsThatHaveBothLevels) {
  ExperimentData data = make_synthetic_factorial(6, {.is_blocked = true}, constant_log_ratio);
  for (ExperimentRow& row : data.rows) {
    if (row.levels[0] == 1 && row.levels[1] < 2) row.state = ExperimentRowState::failed;  // 8 combinations
    if (row.levels == std::vector<std::size_t>{0, 5, 0} && row.block == 0) row.state = ExperimentRowState::failed;
  }
  const MainEffect effect = analyze_effects(data).main_effects.front();
  EXPECT_EQ(effect.combinations, 28U);
  EXPECT_EQ(effect.tested_combinations, 27U);
  EXPECT_EQ(effect.n, 2 * 27U) << "a combination with one pair is in no stratified test";
  EXPECT_EQ(effect.generality, EffectGenerality::same_direction);
  EXPECT_FALSE(effect.model_percent) << "missing cells";
}

TEST(MainEffects, MainEffectsOfASingleCombinationAreItsComparison) {
  const FactorEffects effects =
      analyze_effects(make_synthetic_factorial(7, {.model_count = 1, .batch_count = 1}, constant_log_ratio));
  EXPECT_TRUE(effects.main_effects.empty());
  EXPECT_TRUE(effects.interactions.empty());
}

TEST(MainEffects, MainEffectsOfValuesBelowZeroAreDifferences) {
  ExperimentData data = make_synthetic_factorial(8, {.is_blocked = true}, constant_log_ratio);
  data.metrics = {{"balance", "", true}};
  for (ExperimentRow& row : data.rows)
    row.metrics = {row.levels[0] == 0 ? -1.0 : 1.0 + 0.1 * row.domains[0].joules.value() / 1e6};
  const Result<AnalysisResult> result = analyze(data, {.measure_names = {"balance"}, .resample_count = 10});
  const MainEffect& effect = result->main_effects.front();
  EXPECT_FALSE(effect.percent);
  EXPECT_NEAR(*effect.difference, -2, 0.1);
  EXPECT_EQ(effect.verdict.find("framework1 has "), 0U) << effect.verdict;
}

TEST(MainEffects, MainEffectsExtendToOtherCombinationsOnlyIfThereAreEnough) {
  const AnalysisResult result = analyze_energy(
      make_synthetic_factorial(9, {.model_count = 2, .batch_count = 2, .repetitions = 6}, constant_log_ratio));
  EXPECT_NE(result.main_effects[0].verdict.find("over these 4 combinations"), std::string::npos)
      << result.main_effects[0].verdict;
}

TEST(MainEffects, MainEffectsAreInTheMethodsParagraph) {
  const AnalysisResult result = analyze_energy(make_synthetic_factorial(10, {.is_blocked = true}, constant_log_ratio));
  EXPECT_NE(result.methods.find("stratified signed-rank test"), std::string::npos) << result.methods;
  EXPECT_NE(result.methods.find("random intercept per block"), std::string::npos) << result.methods;
}

TEST(EffectsMethods, MethodsParagraphNamesEveryTestThatWasUsed) {
  AnalysisResult result;
  for (const char* test : {"stratified-signed-rank", "mixed-model-f", "stratified-signed-rank"}) {
    MainEffect effect;
    effect.test = test;
    result.main_effects.push_back(effect);
  }
  const std::string methods = effect_methods_sentences(result);
  EXPECT_NE(methods.find("were tested by the stratified signed-rank test (van Elteren's weights) and the F test of all "
                         "levels in a linear mixed model."),
            std::string::npos)
      << methods;
  EXPECT_EQ(methods.find("rank-sum"), std::string::npos) << methods;
}

}  // namespace
}  // namespace joulemap::experiment
