// SPDX-License-Identifier: Apache-2.0
//
// Every expectation of R (coin, exactRankTests, base) and scipy to 1e-9, of mixed models (lme4) to 1e-6.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "golden_cases.h"
#include "statistics/adjustment.h"
#include "statistics/bootstrap.h"
#include "statistics/correlation.h"
#include "statistics/effect_size.h"
#include "statistics/linear_mixed_model.h"
#include "statistics/post_hoc.h"
#include "statistics/rank_tests.h"
#include "statistics/series.h"
#include "statistics/stratified_tests.h"

namespace joulemap::statistics {
namespace {

constexpr double kTolerance = 1e-9;

void expect_near_golden(const std::optional<double>& expected, double actual_value, const char* quantity_name) {
  if (!expected) return;
  EXPECT_NEAR(actual_value, *expected, kTolerance) << quantity_name;
  // Small tails must be right as such, not just near 0.
  if (*expected > 0) {
    EXPECT_NEAR(actual_value / *expected, 1, 1e-7) << quantity_name;
  }
}

void expect_test_result(const GoldenResult& golden, const TestResult& actual_result) {
  expect_near_golden(golden.p, actual_result.p, "p");
  expect_near_golden(golden.statistic, actual_result.statistic, "statistic");
}

void expect_coefficient(const GoldenResult& golden, const std::optional<TestResult>& actual_result) {
  ASSERT_TRUE(actual_result);
  expect_near_golden(golden.p, actual_result->p, "p");
  expect_near_golden(golden.estimate, actual_result->statistic, "coefficient");
}

void expect_shift_estimate(const GoldenResult& golden, const std::optional<EffectEstimate>& actual_estimate) {
  ASSERT_TRUE(actual_estimate);
  expect_near_golden(golden.estimate, actual_estimate->estimate, "estimate");
  expect_near_golden(golden.low, actual_estimate->low, "low");
  expect_near_golden(golden.high, actual_estimate->high, "high");
}

void expect_values(const GoldenResult& golden, const std::vector<double>& actual_values) {
  ASSERT_EQ(golden.values.size(), actual_values.size());
  for (std::size_t i = 0; i < actual_values.size(); ++i)
    EXPECT_NEAR(actual_values[i], golden.values[i], kTolerance) << i;
}

// Replicates are the other program's: what is compared is what is made of them.
void expect_bca_interval(const GoldenResult& golden, const GoldenInput& input, const Statistic& statistic) {
  std::vector<double> jackknife;
  for (std::size_t out = 0; out < input.first.size(); ++out) {
    std::vector<double> jackknife_sample = input.first;
    jackknife_sample.erase(jackknife_sample.begin() + static_cast<std::ptrdiff_t>(out));
    jackknife.push_back(statistic(jackknife_sample));
  }
  std::vector<double> replicates = golden.values;
  const BootstrapInterval actual_interval = bca_interval(replicates, statistic(input.first), jackknife, 0.95);
  EXPECT_FALSE(actual_interval.is_degenerate);
  expect_near_golden(golden.low, actual_interval.low, "low");
  expect_near_golden(golden.high, actual_interval.high, "high");
}

void expect_trend(const GoldenResult& golden, const GoldenInput& input) {
  const Trend trend = mann_kendall_trend(input.first);
  expect_near_golden(golden.p, trend.test.p, "p");
  expect_near_golden(golden.estimate, trend.tau, "tau");
}

void expect_quartiles(const GoldenResult& golden, const GoldenInput& input) {
  std::vector<double> sorted_values = input.first;
  std::ranges::sort(sorted_values);
  expect_values(golden, {quantile_of_sorted(sorted_values, 0.25), median_of(sorted_values),
                         quantile_of_sorted(sorted_values, 0.75)});
}

std::vector<double> p_values(const std::vector<PairComparison>& pairs) {
  std::vector<double> values(pairs.size());
  std::ranges::transform(pairs, values.begin(), [](const PairComparison& pair) { return pair.p; });
  return values;
}

std::vector<Stratum> make_strata(const GoldenInput& input) {
  std::vector<Stratum> strata(1 + static_cast<std::size_t>(input.strata.back()));
  for (std::size_t i = 0; i < input.first.size(); ++i) {
    Stratum& stratum = strata[static_cast<std::size_t>(input.strata[i])];
    (input.groups[i] == 0 ? stratum.first_values : stratum.second_values).push_back(input.first[i]);
  }
  return strata;
}

enum class BlockModel { random, none };

FactorialData make_factorial_data(const GoldenInput& input, BlockModel blocks) {
  FactorialData data{input.first, {}, {}};
  const std::size_t factors = input.levels.size() / input.first.size();
  for (std::size_t i = 0; i < input.first.size(); ++i) {
    const auto levels = input.levels.begin() + static_cast<std::ptrdiff_t>(i * factors);
    data.levels.emplace_back(levels, levels + static_cast<std::ptrdiff_t>(factors));
    if (blocks == BlockModel::random) data.blocks.push_back(static_cast<std::size_t>(input.blocks[i]));
  }
  return data;
}

// The main effects of all factors, then all two-way interactions.
std::vector<ModelTerm> two_way_terms(std::size_t factors) {
  std::vector<ModelTerm> terms;
  for (std::size_t i = 0; i < factors; ++i) terms.push_back({i});
  for (std::size_t i = 0; i < factors; ++i) {
    for (std::size_t j = i + 1; j < factors; ++j) terms.push_back({i, j});
  }
  return terms;
}

FactorialFit fit_two_way_model(const FactorialData& data) {
  return fit_factorial_model(data, two_way_terms(data.levels.front().size())).value();
}

// `number` of the test of each term.
std::vector<double> test_values_by_term(const GoldenInput& input, BlockModel blocks, double FTestResult::*number) {
  const FactorialFit fit = fit_two_way_model(make_factorial_data(input, blocks));
  std::vector<double> values;
  for (std::size_t term = 0; term < fit.terms.size(); ++term) values.push_back(*wald_f_test(fit, term).*number);
  return values;
}

std::vector<double> aligned_rank_f(const GoldenInput& input) {
  const FactorialData data = make_factorial_data(input, BlockModel::none);
  const FactorialFit fit = fit_two_way_model(data);
  std::vector<double> values;
  for (std::size_t term = 0; term < fit.terms.size(); ++term) values.push_back(aligned_rank_test(data, fit, term)->f);
  return values;
}

std::vector<double> fit_variances(const GoldenInput& input) {
  const FactorialFit fit = fit_two_way_model(make_factorial_data(input, BlockModel::random));
  return {fit.block_variance, fit.residual_variance};
}

// The maximum of the likelihood is flat: two programs agree on it to the root of the machine precision.
void expect_close_values(const GoldenResult& golden, const std::vector<double>& actual_values) {
  ASSERT_EQ(golden.values.size(), actual_values.size());
  for (std::size_t i = 0; i < actual_values.size(); ++i)
    EXPECT_NEAR(actual_values[i], golden.values[i], 1e-6 * golden.values[i]) << i;
}

void expect_difference(const GoldenResult& golden, const GoldenInput& input, BlockModel blocks) {
  const std::optional<EffectEstimate> actual_estimate =
      estimate_level_difference(fit_two_way_model(make_factorial_data(input, blocks)), 0, 0, 1, 0.95);
  ASSERT_TRUE(actual_estimate);
  EXPECT_NEAR(actual_estimate->estimate, *golden.estimate, kTolerance);
  EXPECT_NEAR(actual_estimate->low, *golden.low, kTolerance);
  EXPECT_NEAR(actual_estimate->high, *golden.high, kTolerance);
}

using Comparison = std::function<void(const GoldenResult&, const GoldenInput&)>;

const std::map<std::string, Comparison>& comparisons() {
  using G = const GoldenResult&;
  using I = const GoldenInput&;
  static const std::map<std::string, Comparison> table{
      {"signed_rank_drop",
       [](G g, I i) { expect_test_result(g, signed_rank_test(i.first, i.second, ZeroDifferences::drop)); }},
      {"signed_rank_pratt",
       [](G g, I i) { expect_test_result(g, signed_rank_test(i.first, i.second, ZeroDifferences::pratt)); }},
      {"rank_sum", [](G g, I i) { expect_test_result(g, rank_sum_test(i.first, i.second)); }},
      {"friedman", [](G g, I i) { expect_test_result(g, friedman_test(i.lists())); }},
      {"kruskal_wallis", [](G g, I i) { expect_test_result(g, kruskal_wallis_test(i.lists())); }},
      {"nemenyi", [](G g, I i) { expect_values(g, p_values(nemenyi_test(i.lists()))); }},
      {"dunn", [](G g, I i) { expect_values(g, p_values(dunn_test(i.lists()))); }},
      {"spearman", [](G g, I i) { expect_coefficient(g, spearman(i.first, i.second)); }},
      {"kendall", [](G g, I i) { expect_coefficient(g, kendall(i.first, i.second)); }},
      {"mann_kendall", expect_trend},
      {"theil_sen", [](G g, I i) { expect_near_golden(g.estimate, mann_kendall_trend(i.first).slope, "slope"); }},
      {"a12", [](G g, I i) { expect_near_golden(g.estimate, vargha_delaney_a12(i.first, i.second), "A12"); }},
      {"paired_shift", [](G g, I i) { expect_shift_estimate(g, paired_shift(i.first, i.second, 0.95)); }},
      {"paired_interval", [](G g, I i) { expect_shift_estimate(g, paired_shift(i.first, i.second, 0.95)); }},
      {"unpaired_shift", [](G g, I i) { expect_shift_estimate(g, unpaired_shift(i.first, i.second, 0.95)); }},
      {"unpaired_interval", [](G g, I i) { expect_shift_estimate(g, unpaired_shift(i.first, i.second, 0.95)); }},
      {"adjusted_holm", [](G g, I i) { expect_values(g, adjusted_p_values(i.first, Adjustment::holm)); }},
      {"adjusted_bonferroni", [](G g, I i) { expect_values(g, adjusted_p_values(i.first, Adjustment::bonferroni)); }},
      {"adjusted_bh", [](G g, I i) { expect_values(g, adjusted_p_values(i.first, Adjustment::benjamini_hochberg)); }},
      {"bca_mean", [](G g, I i) { expect_bca_interval(g, i, mean_of); }},
      {"bca_median", [](G g, I i) { expect_bca_interval(g, i, median_of); }},
      {"quartiles", expect_quartiles},
      {"stratified_signed_rank", [](G g, I i) { expect_test_result(g, stratified_signed_rank_test(make_strata(i))); }},
      {"stratified_rank_sum", [](G g, I i) { expect_test_result(g, stratified_rank_sum_test(make_strata(i))); }},
      {"mixed_model_f",
       [](G g, I i) { expect_close_values(g, test_values_by_term(i, BlockModel::random, &FTestResult::f)); }},
      {"mixed_model_p",
       [](G g, I i) { expect_close_values(g, test_values_by_term(i, BlockModel::random, &FTestResult::p)); }},
      {"mixed_model_variances", [](G g, I i) { expect_close_values(g, fit_variances(i)); }},
      {"mixed_model_difference", [](G g, I i) { expect_difference(g, i, BlockModel::random); }},
      {"linear_model_f",
       [](G g, I i) { expect_close_values(g, test_values_by_term(i, BlockModel::none, &FTestResult::f)); }},
      {"linear_model_difference", [](G g, I i) { expect_difference(g, i, BlockModel::none); }},
      {"aligned_rank_f", [](G g, I i) { expect_close_values(g, aligned_rank_f(i)); }},
  };
  return table;
}

void compare_with_goldens(const std::string& file, std::size_t at_least) {
  const auto inputs = read_golden_inputs();
  const std::vector<GoldenResult> golden_results = read_golden_results(file);
  ASSERT_GE(golden_results.size(), at_least);
  for (const GoldenResult& golden : golden_results) {
    SCOPED_TRACE(golden.test + " of " + golden.id + ", by " + golden.reference_program);
    ASSERT_TRUE(inputs.contains(golden.id));
    ASSERT_TRUE(comparisons().contains(golden.test));
    comparisons().at(golden.test)(golden, inputs.at(golden.id));
  }
}

TEST(StatisticsGoldens, AgreeWithR) { compare_with_goldens("r.json", 321); }

TEST(StatisticsGoldens, AgreeWithScipy) { compare_with_goldens("scipy.json", 161); }

}  // namespace
}  // namespace joulemap::statistics
