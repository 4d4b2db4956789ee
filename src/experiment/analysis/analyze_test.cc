// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/analyze.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "experiment/analysis/experiment_table.h"
#include "experiment/analysis/synthetic_experiment.h"
#include "experiment/analysis/verdict.h"

namespace joulemap::experiment {
namespace {

// Small deterministic noise in [0, 1) without a trend.
double deterministic_noise(std::size_t repetition) { return static_cast<double>((repetition * 7 + 3) % 10) / 10; }

ExperimentData make_doubled_energy_data(bool is_blocked) {
  ExperimentData data =
      synthetic_experiment({"a", "b"}, {"m", "n"}, 10, [](std::size_t framework_level, std::size_t, std::size_t i) {
        return 100.0 * static_cast<double>(1 + framework_level) + deterministic_noise(i);
      });
  data.is_blocked = is_blocked;
  return data;
}

AnalysisResult expect_analysis(const ExperimentData& data, const AnalysisOptions& options = {}) {
  Result<AnalysisResult> result = analyze(data, options);
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

std::vector<Comparison> select_comparisons(const AnalysisResult& result, std::string_view name) {
  std::vector<Comparison> matching_comparisons;
  for (const Comparison& comparison : result.comparisons) {
    if (result.measures[comparison.measure].name == name) matching_comparisons.push_back(comparison);
  }
  return matching_comparisons;
}

TEST(Analyze, BlockedRowsAreComparedBlockByBlock) {
  const AnalysisResult result = expect_analysis(make_doubled_energy_data(true));
  const std::vector<Comparison> energy = select_comparisons(result, "energy_j");
  ASSERT_EQ(energy.size(), 2);  // one per model
  EXPECT_EQ(energy[0].test, "wilcoxon-signed-rank");
  EXPECT_DOUBLE_EQ(*energy[0].p, 2.0 / 1024);
  EXPECT_EQ(energy[0].vargha_delaney_a12, 0);
  EXPECT_GT(*energy[0].a12_high, 0.05);  // ten lower rows out of ten do not prove that every row is lower
  EXPECT_LT(*energy[0].a12_high, 0.4);
  EXPECT_NEAR(*energy[0].difference, -100, 1e-9);
  EXPECT_NEAR(*energy[0].percent, -50, 0.5);
  EXPECT_TRUE(energy[0].is_different);
  EXPECT_NE(energy[0].verdict.find("a uses"), std::string::npos);
  EXPECT_NE(energy[0].verdict.find("less energy than b"), std::string::npos);
}

TEST(Analyze, RowsWithoutBlocksGetThePairedAndTheUnpairedTest) {
  const AnalysisResult result = expect_analysis(make_doubled_energy_data(false));
  const std::vector<Comparison> energy = select_comparisons(result, "energy_j");
  ASSERT_EQ(energy.size(), 4);
  EXPECT_EQ(energy[0].test, "wilcoxon-signed-rank");
  EXPECT_EQ(energy[1].test, "mann-whitney");
  EXPECT_NEAR(*energy[1].p, 2.0 / 184756, 1e-15);  // 184756 = binomial(20, 10) equally likely orders
}

TEST(Analyze, MoreThanTwoLevelsGetAnOmnibusAndPairwiseTests) {
  ExperimentData data =
      synthetic_experiment({"a", "b", "c"}, {"m"}, 8, [](std::size_t framework_level, std::size_t, std::size_t i) {
        return 100.0 + 5 * static_cast<double>(framework_level) + deterministic_noise(i);
      });
  const std::vector<Comparison> blocked = select_comparisons(expect_analysis(data), "energy_j");
  ASSERT_EQ(blocked.size(), 4);
  EXPECT_EQ(blocked[0].test, "friedman");
  EXPECT_FALSE(blocked[0].a);
  data.is_blocked = false;
  const std::vector<Comparison> unblocked_comparisons = select_comparisons(expect_analysis(data), "energy_j");
  ASSERT_EQ(unblocked_comparisons.size(), 8);
  EXPECT_EQ(unblocked_comparisons[4].test, "kruskal-wallis");
}

TEST(Analyze, FactorsThatAreNotComparedDefineStrata) {
  const AnalysisResult result = expect_analysis(make_doubled_energy_data(true));
  for (const Comparison& comparison : result.comparisons) EXPECT_EQ(comparison.factor, 0);
  const AnalysisResult requested_analysis =
      expect_analysis(make_doubled_energy_data(true), {.compared_factors = {"model"}});
  for (const Comparison& comparison : requested_analysis.comparisons) EXPECT_EQ(comparison.factor, 1);
  EXPECT_FALSE(analyze(make_doubled_energy_data(true), {.compared_factors = {"nothing"}}));
  EXPECT_FALSE(analyze(make_doubled_energy_data(true), {.measure_names = {"nothing"}}));
}

TEST(Analyze, AFamilyIsTheTestsOfOneFactorAndOnePairing) {
  const AnalysisResult result =
      expect_analysis(make_doubled_energy_data(false), {.adjustment = statistics::Adjustment::bonferroni});
  for (const Comparison& comparison : result.comparisons) {
    EXPECT_EQ(comparison.family_size, 4);  // two models x (energy, time)
    EXPECT_DOUBLE_EQ(*comparison.p_adjusted, std::min(1.0, 4 * *comparison.p));
  }
}

TEST(Analyze, EqualCellsAreNotSignificant) {
  const ExperimentData data =
      synthetic_experiment({"a", "b"}, {"m"}, 10, [](std::size_t framework_level, std::size_t, std::size_t i) {
        return 100 + deterministic_noise(i + 5 * framework_level);
      });
  for (const Comparison& comparison : expect_analysis(data).comparisons) {
    EXPECT_FALSE(comparison.is_different);
    EXPECT_NE(comparison.verdict.find("no significant difference"), std::string::npos) << comparison.verdict;
  }
}

TEST(Analyze, ReportsTooFewRowsForSignificance) {
  const ExperimentData data =
      synthetic_experiment({"a", "b"}, {"m", "n", "o"}, 6, [](std::size_t framework_level, std::size_t, std::size_t i) {
        return 100.0 * static_cast<double>(1 + framework_level) + deterministic_noise(i);
      });
  const AnalysisResult result = expect_analysis(data);
  const bool is_flagged = std::any_of(result.flags.begin(), result.flags.end(),
                                      [](const AnalysisFlag& flag) { return flag.code == "p_floor"; });
  EXPECT_TRUE(is_flagged);
  EXPECT_NE(result.comparisons[0].verdict.find("not significant with 6 pairs"), std::string::npos);
  EXPECT_EQ(result.comparisons[0].min_rows_per_level,
            8);  // the smallest p of 8 pairs, times 6 tests: 2 / 2^8 x 6 < 0.05
}

TEST(Analyze, IntervalsOfFewRowsStateTheirConfidence) {
  const ExperimentData data =
      synthetic_experiment({"a", "b"}, {"m"}, 4, [](std::size_t framework_level, std::size_t, std::size_t i) {
        return 100 + 10 * static_cast<double>(framework_level) + deterministic_noise(i + 5 * framework_level);
      });
  const Comparison comparison = expect_analysis(data).comparisons[0];
  ASSERT_TRUE(comparison.confidence);
  EXPECT_DOUBLE_EQ(*comparison.confidence, 0.875);  // of 4 pairs: 1 - 2 / 2^4
  EXPECT_NE(comparison.verdict.find(" at 87.5 % confidence"), std::string::npos) << comparison.verdict;
  EXPECT_NE(comparison.verdict.find("difference in energy between a and b"), std::string::npos) << comparison.verdict;
  const AnalysisResult more_rows = expect_analysis(make_doubled_energy_data(true));
  EXPECT_EQ(more_rows.comparisons[0].verdict.find("confidence"), std::string::npos) << more_rows.comparisons[0].verdict;
}

TEST(Analyze, ASingleRowHasNoIntervalAndNoDeviation) {
  const AnalysisResult result = expect_analysis(
      synthetic_experiment({"a", "b"}, {"m"}, 1, [](std::size_t framework_level, std::size_t, std::size_t) {
        return 100.0 + static_cast<double>(framework_level);
      }));
  for (const AnalysisCell& cell : result.cells) {
    ASSERT_TRUE(cell.measures[0]);
    EXPECT_FALSE(cell.measures[0]->low || cell.measures[0]->high || cell.measures[0]->standard_deviation);
  }
}

TEST(Analyze, ThePFloorFollowsTheAdjustmentAndIgnoresArbitraryPairs) {
  const auto has_p_floor = [](const AnalysisResult& result) {
    return std::ranges::find(result.flags, "p_floor", &AnalysisFlag::code) != result.flags.end();
  };
  ExperimentData data =
      synthetic_experiment({"a", "b"}, {"m", "n", "o"}, 6, [](std::size_t framework_level, std::size_t, std::size_t i) {
        return 100.0 * static_cast<double>(1 + framework_level) + deterministic_noise(i);
      });
  const AnalysisResult adjusted_result =
      expect_analysis(data, {.adjustment = statistics::Adjustment::benjamini_hochberg});
  EXPECT_TRUE(adjusted_result.comparisons[0].is_different);
  EXPECT_FALSE(has_p_floor(adjusted_result));
  EXPECT_FALSE(has_p_floor(expect_analysis(data, {.adjustment = statistics::Adjustment::none})));
  EXPECT_TRUE(has_p_floor(expect_analysis(data)));
  data.is_blocked = false;  // 6 independent rows per level suffice, 6 pairs would not
  EXPECT_FALSE(has_p_floor(expect_analysis(data)));
}

TEST(Analyze, AChangeNamesThePercentageOnlyInItsOwnDirection) {
  const Measure time{.name = "time_s", .kind = MeasureKind::time, .unit = "s"};
  EXPECT_EQ(change_phrase(time, 0.147, 1.2), "takes 1.2 % more time");
  EXPECT_EQ(change_phrase(time, 0.147, -1.2), "takes 147 ms more time");
}

TEST(Analyze, ANondominatedCellIsOnTheParetoFront) {
  ExperimentData data = make_doubled_energy_data(true);
  data.metrics = {{"accuracy", "", true}};
  for (ExperimentRow& row : data.rows) row.metrics = {row.levels[0] == 0 ? 0.7 : 0.6};
  const AnalysisResult result = expect_analysis(data);
  ASSERT_EQ(result.pareto.size(), 2);  // one per model
  EXPECT_TRUE(result.pareto[0].points[0].is_on_front);
  EXPECT_EQ(result.pareto[0].points[0].probability, 1);
  EXPECT_FALSE(result.pareto[0].points[1].is_on_front);
  EXPECT_EQ(result.pareto[0].points[1].probability, 0);
  for (ExperimentRow& row : data.rows) row.metrics = {row.levels[0] == 0 ? 0.6 : 0.7};
  EXPECT_TRUE(expect_analysis(data).pareto[0].points[1].is_on_front);
}

TEST(Analyze, TheNumberOfThreadsChangesNothing) {
  ExperimentData data = make_doubled_energy_data(false);
  data.seed = 42;
  const AnalysisResult single_threaded_result = expect_analysis(data, {.thread_count = 1});
  const AnalysisResult multithreaded_result = expect_analysis(data, {.thread_count = 4});
  for (std::size_t cell = 0; cell < single_threaded_result.cells.size(); ++cell) {
    EXPECT_EQ(single_threaded_result.cells[cell].measures[0]->low, multithreaded_result.cells[cell].measures[0]->low);
    EXPECT_EQ(single_threaded_result.cells[cell].measures[0]->high, multithreaded_result.cells[cell].measures[0]->high);
  }
  for (std::size_t i = 0; i < single_threaded_result.comparisons.size(); ++i) {
    EXPECT_EQ(single_threaded_result.comparisons[i].p_adjusted, multithreaded_result.comparisons[i].p_adjusted);
    EXPECT_EQ(single_threaded_result.comparisons[i].low, multithreaded_result.comparisons[i].low);
  }
}

TEST(Analyze, TheFirstEpochIsSummarizedSeparately) {
  ExperimentData data = synthetic_experiment({"a"}, {"m"}, 2, [](auto, auto, auto) { return 10.0; });
  for (ExperimentRow& row : data.rows) row.epochs = {{0, 3, 6.0, {}}, {3, 1, 2.0, {}}, {4, 1, 4.0, {}}};
  const AnalysisResult result = expect_analysis(data);
  ASSERT_TRUE(result.cells[0].epochs);
  EXPECT_EQ(result.cells[0].epochs->first_j, 6);
  EXPECT_EQ(result.cells[0].epochs->later_j, 3);
  EXPECT_EQ(result.cells[0].epochs->later_s, 1);
}

TEST(Analyze, DomainsOfOneKindFormOneMeasure) {
  EXPECT_EQ(kind_of_domain("package-1"), "package");
  EXPECT_EQ(kind_of_domain("gpu0"), "gpu");
  EXPECT_EQ(kind_of_domain("psys"), "psys");
  ExperimentData data = synthetic_experiment({"a"}, {"m"}, 2, [](auto, auto, auto) { return 30.0; });
  for (ExperimentRow& row : data.rows) {
    row.domains = {make_domain_energy("package-0", 10), make_domain_energy("package-1", 10),
                   make_domain_energy("gpu0", 10)};
  }
  const AnalysisResult result = expect_analysis(data);
  ASSERT_EQ(result.measures.size(), 4);  // energy, package, gpu, time
  EXPECT_EQ(result.measures[1].name, "package");
  EXPECT_EQ(result.cells[0].measures[1]->mean, 20);
}

// The GPU is measured, the CPUs are only estimated. The estimates of a and b differ greatly, the measurements do not.
ExperimentData make_data_with_estimates() {
  ExperimentData data = synthetic_experiment({"a", "b"}, {"m"}, 10, [](auto, auto, auto) { return 1.0; });
  for (ExperimentRow& row : data.rows) {
    const double estimate_j = 1000.0 * static_cast<double>(1 + row.levels[0]);
    row.domains = {make_domain_energy("gpu0", 100 + deterministic_noise(row.block + 5 * row.levels[0])),
                   make_domain_energy("package-0", estimate_j, Provenance::estimated)};
  }
  return data;
}

bool has_flag(const std::vector<AnalysisFlag>& flags, std::string_view code) {
  return std::any_of(flags.begin(), flags.end(), [&](const AnalysisFlag& flag) { return flag.code == code; });
}

TEST(Analyze, ComparesMeasuredEnergyAndAddsNoEstimateToIt) {
  const AnalysisResult result = expect_analysis(make_data_with_estimates());
  const std::vector<Comparison> energy = select_comparisons(result, "energy_j");
  ASSERT_EQ(energy.size(), 1u);
  EXPECT_FALSE(energy[0].is_different) << energy[0].verdict;
  EXPECT_LT(result.cells[1].measures[0]->mean, 102);
  EXPECT_EQ(result.measures[0].provenance, Provenance::measured);
  EXPECT_EQ(result.measures[0].domains, std::vector<std::string>{"gpu0"});
  EXPECT_TRUE(has_flag(result.flags, "estimates_not_added"));
  EXPECT_NE(result.methods.find("Energy is measured: the sum of gpu0."), std::string::npos) << result.methods;
}

TEST(Analyze, ComparesAnEstimatedDomainOnlyOnRequest) {
  const ExperimentData data = make_data_with_estimates();
  const AnalysisResult result = expect_analysis(data);
  EXPECT_TRUE(select_comparisons(result, "package").empty());
  EXPECT_EQ(result.cells[1].measures[2]->mean, 2000);
  const AnalysisResult requested_analysis = expect_analysis(data, {.measure_names = {"package"}});
  ASSERT_EQ(requested_analysis.comparisons.size(), 1u);
  EXPECT_NE(requested_analysis.comparisons[0].verdict.find("less estimated energy of package than b"),
            std::string::npos)
      << requested_analysis.comparisons[0].verdict;
}

TEST(Analyze, WithoutMeasurementsComparesEstimatesAndMarksThem) {
  ExperimentData data = make_doubled_energy_data(true);
  for (ExperimentRow& row : data.rows) row.domains[0].provenance = Provenance::estimated;
  const AnalysisResult result = expect_analysis(data);
  EXPECT_TRUE(has_flag(result.flags, "estimated_energy"));
  const std::vector<Comparison> energy = select_comparisons(result, "energy_j");
  EXPECT_NE(energy[0].verdict.find("less estimated energy than b"), std::string::npos) << energy[0].verdict;
}

TEST(Analyze, ComparesRowsByTheirCommonDomains) {
  ExperimentData data = synthetic_experiment({"a", "b"}, {"m"}, 10, [](auto, auto, auto) { return 1.0; });
  for (ExperimentRow& row : data.rows) {
    row.domains = {make_domain_energy("gpu0", 100 + deterministic_noise(row.block + 5 * row.levels[0]))};
    if (row.levels[0] == 1) row.domains.push_back(make_domain_energy("package-0", 500));
  }
  const AnalysisResult result = expect_analysis(data);
  EXPECT_TRUE(has_flag(result.flags, "domains_differ"));
  EXPECT_EQ(result.measures[0].domains, std::vector<std::string>{"gpu0"});
  EXPECT_EQ(result.measures[0].excluded_domains, std::vector<std::string>{"package-0"});
  EXPECT_FALSE(select_comparisons(result, "energy_j")[0].is_different);
  EXPECT_EQ(result.row_flags[0], std::vector<std::string>{"domains_differ"}) << "it lacks what others have";
  EXPECT_TRUE(result.row_flags[1].empty());
}

TEST(Analyze, RefusesRowsWithoutACommonDomainWithAReason) {
  ExperimentData data = synthetic_experiment({"a", "b"}, {"m"}, 10, [](auto, auto, auto) { return 1.0; });
  for (ExperimentRow& row : data.rows) row.domains = {make_domain_energy(row.levels[0] == 0 ? "gpu0" : "psys", 100)};
  const AnalysisResult result = expect_analysis(data);
  EXPECT_TRUE(has_flag(result.flags, "no_common_domain"));
  const std::vector<Comparison> energy = select_comparisons(result, "energy_j");
  ASSERT_EQ(energy.size(), 1u);
  EXPECT_FALSE(energy[0].p);
  EXPECT_NE(energy[0].verdict.find("no common domain"), std::string::npos) << energy[0].verdict;
  EXPECT_TRUE(select_comparisons(result, "time_s")[0].p);
}

TEST(Analyze, ExcludesEpochsOfEstimatedRowsFromMeans) {
  ExperimentData data = synthetic_experiment({"a"}, {"m"}, 2, [](auto, auto, auto) { return 10.0; });
  for (ExperimentRow& row : data.rows) row.epochs = {{0, 3, row.block == 0 ? 6.0 : 600.0, {}}};
  data.rows[1].domains = {make_domain_energy("package-0", 1000, Provenance::estimated)};
  const AnalysisResult result = expect_analysis(data);
  EXPECT_EQ(result.cells[0].epochs->first_j, 6);
}

TEST(Analyze, AnExperimentWithoutRowsIsAnError) {
  ExperimentData data = make_doubled_energy_data(true);
  for (ExperimentRow& row : data.rows) row.state = ExperimentRowState::todo;
  EXPECT_FALSE(analyze(data, {}));
}

}  // namespace
}  // namespace joulemap::experiment
