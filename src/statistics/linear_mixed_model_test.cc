// SPDX-License-Identifier: Apache-2.0
//
// Properties of the model. tests/statistics/goldens_test.cc compares its numbers with R.
#include "statistics/linear_mixed_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "statistics/random.h"

namespace joulemap::statistics {
namespace {

const std::vector<ModelTerm> kModelTerms{{0}, {1}, {0, 1}};

struct TrueEffects {
  double first = 0;        // effect of level 0 of the first factor against level 1
  double interaction = 0;  // additional effect of level 0 of both factors
  double block_sd = 0;
  double noise = 0.1;
};

// Two factors of two and three levels, in blocks that contain each cell once.
FactorialData blocked_data(Random& random, std::size_t blocks, const TrueEffects& truth) {
  FactorialData data;
  for (std::size_t block = 0; block < blocks; ++block) {
    const double block_effect = truth.block_sd * random.normal();
    for (std::size_t first_factor_level = 0; first_factor_level < 2; ++first_factor_level) {
      for (std::size_t second_factor_level = 0; second_factor_level < 3; ++second_factor_level) {
        const double effect = (first_factor_level == 0 ? truth.first : 0) +
                              (first_factor_level == 0 && second_factor_level == 0 ? truth.interaction : 0);
        data.values.push_back(static_cast<double>(second_factor_level) + effect + block_effect +
                              truth.noise * random.normal());
        data.levels.push_back({first_factor_level, second_factor_level});
        data.blocks.push_back(block);
      }
    }
  }
  return data;
}

double term_p_value(const FactorialData& data, std::size_t term) {
  return wald_f_test(*fit_factorial_model(data, kModelTerms), term)->p;
}

TEST(LinearMixedModel, FindsEffectsThatBlocksHideFromAPlainModel) {
  Random random(1);
  FactorialData data = blocked_data(random, 8, {.first = 0.2, .block_sd = 1});
  EXPECT_LT(term_p_value(data, 0), 0.001);
  data.blocks.clear();
  EXPECT_GT(term_p_value(data, 0), 0.1);
}

TEST(LinearMixedModel, FindsAnInteraction) {
  Random random(2);
  const FactorialData data = blocked_data(random, 8, {.first = 0, .interaction = 0.5, .block_sd = 0.3});
  EXPECT_LT(term_p_value(data, 2), 1e-6);
  const FactorialFit fit = *fit_factorial_model(data, kModelTerms);
  EXPECT_LT(aligned_rank_test(data, fit, 2)->p, 1e-4);
}

TEST(LinearMixedModel, MixedModelEstimatesVariances) {
  Random random(3);
  const FactorialData data = blocked_data(random, 200, {.block_sd = 0.5, .noise = 0.1});
  const FactorialFit fit = *fit_factorial_model(data, kModelTerms);
  EXPECT_NEAR(std::sqrt(fit.block_variance), 0.5, 0.08);
  EXPECT_NEAR(std::sqrt(fit.residual_variance), 0.1, 0.01);
}

TEST(LinearMixedModel, ComparesAFactorWithinEveryCombinationOfTheOthers) {
  const std::vector<ModelTerm> terms = make_comparison_terms(3, 1, true);
  EXPECT_EQ(terms, (std::vector<ModelTerm>{{0}, {2}, {0, 2}, {1}, {0, 1}, {1, 2}}));
  Random random(6);
  FactorialData data;
  for (std::size_t i = 0; i < 48; ++i) {
    const std::vector<std::size_t> levels{i % 2, i / 2 % 2, i / 4 % 4};
    const double combination_effect = 10 * std::sin(static_cast<double>(5 * levels[0] + 3 * levels[2]));
    data.values.push_back(combination_effect + (levels[1] == 0 ? 0.3 : 0) + 0.1 * random.normal());
    data.levels.push_back(levels);
  }
  EXPECT_NEAR(estimate_level_difference(*fit_factorial_model(data, terms), 1, 0, 1, 0.95)->estimate, 0.3, 0.1);
  EXPECT_LT(wald_f_test(*fit_factorial_model(data, terms), 3)->p, 1e-6);
}

TEST(LinearMixedModel, MixedModelDoesNotDependOnTheUnit) {
  Random random(4);
  FactorialData data = blocked_data(random, 5, {.first = 0.1, .block_sd = 0.3});
  const double original_p = term_p_value(data, 0);
  for (double& value : data.values) value = 1000 * value + 1e6;
  EXPECT_NEAR(term_p_value(data, 0) / original_p, 1, 1e-6);
}

TEST(LinearMixedModel, RefusesTermsThatTheDataDoNotDetermine) {
  Random random(5);
  EXPECT_FALSE(fit_factorial_model({}, kModelTerms));
  EXPECT_FALSE(fit_factorial_model(blocked_data(random, 1, {}), kModelTerms)) << "no repetitions";
  EXPECT_FALSE(fit_factorial_model(blocked_data(random, 4, {.noise = 0}), kModelTerms)) << "no noise";
  FactorialData data = blocked_data(random, 5, {});
  for (std::size_t i = data.values.size(); i-- > 0;) {
    if (data.levels[i] != std::vector<std::size_t>{0, 2}) continue;
    data.values.erase(data.values.begin() + static_cast<std::ptrdiff_t>(i));
    data.levels.erase(data.levels.begin() + static_cast<std::ptrdiff_t>(i));
    data.blocks.erase(data.blocks.begin() + static_cast<std::ptrdiff_t>(i));
  }
  const FactorialFit fit = *fit_factorial_model(data, kModelTerms);
  EXPECT_FALSE(estimate_level_difference(fit, 0, 0, 1, 0.95))
      << "one level of the second factor has only one of the first";
  EXPECT_EQ(wald_f_test(fit, 2)->numerator_df, 1);
}

// False alarms, and coverage of the interval, for blocks with and without an effect. The level is 0.05 for blocks with
// an effect. Without, a positive estimate of their variance makes it 0.055, that of aligned ranks 0.059 (20,000
// trials).
TEST(LinearMixedModel, MixedModelKeepsItsSignificanceLevelAndItsCoverage) {
  constexpr int kTrials = 2000;
  constexpr double kMaxFalseAlarms = 0.07;
  for (const double block_sd : {0.0, 0.3}) {
    const std::uint64_t seed = 20270102;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", blocks " << block_sd);
    Random random(seed);
    std::vector<double> wald_rejections(3);
    double rank_test_rejections = 0;
    double coverage_count = 0;
    for (int i = 0; i < kTrials; ++i) {
      const FactorialData data = blocked_data(random, 4, {.block_sd = block_sd});
      const FactorialFit fit = *fit_factorial_model(data, kModelTerms);
      for (const std::size_t term : {0, 2}) wald_rejections[term] += wald_f_test(fit, term)->p < 0.05 ? 1 : 0;
      rank_test_rejections += aligned_rank_test(data, fit, 2)->p < 0.05 ? 1 : 0;
      const EffectEstimate difference = *estimate_level_difference(fit, 0, 0, 1, 0.95);
      coverage_count += difference.low <= 0 && difference.high >= 0 ? 1 : 0;
    }
    EXPECT_LE(wald_rejections[0] / kTrials, kMaxFalseAlarms);
    EXPECT_LE(wald_rejections[2] / kTrials, kMaxFalseAlarms);
    EXPECT_LE(rank_test_rejections / kTrials, kMaxFalseAlarms);
    EXPECT_GE(coverage_count / kTrials, 1 - kMaxFalseAlarms);
  }
}

}  // namespace
}  // namespace joulemap::statistics
