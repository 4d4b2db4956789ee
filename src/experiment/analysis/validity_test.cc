// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/validity.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "experiment/analysis/analyze.h"
#include "experiment/analysis/synthetic_experiment.h"

namespace joulemap::experiment {
namespace {

double deterministic_noise(std::size_t repetition) { return static_cast<double>((repetition * 7 + 3) % 10) / 10; }

ExperimentData make_undisturbed_data() {
  return synthetic_experiment({"a", "b"}, {"m"}, 10, [](std::size_t framework_level, std::size_t, std::size_t i) {
    return 100.0 + static_cast<double>(framework_level) + deterministic_noise(i);
  });
}

bool has_flag(const std::vector<AnalysisFlag>& flags, std::string_view code) {
  return std::any_of(flags.begin(), flags.end(), [&](const AnalysisFlag& flag) { return flag.code == code; });
}

AnalysisResult expect_analysis(const ExperimentData& data) {
  Result<AnalysisResult> result = analyze(data, {});
  EXPECT_TRUE(result);
  return *std::move(result);
}

// Flags of the first cell after `change` was applied to its rows.
std::vector<AnalysisFlag> analyze_changed_data(const std::function<void(ExperimentRow&)>& change) {
  ExperimentData data = make_undisturbed_data();
  for (ExperimentRow& row : data.rows) {
    if (row.levels[0] == 0) change(row);
  }
  return expect_analysis(data).cells[0].flags;
}

TEST(Validity, AnUndisturbedExperimentHasNoFlags) {
  const AnalysisResult result = expect_analysis(make_undisturbed_data());
  for (const AnalysisCell& cell : result.cells) {
    for (const AnalysisFlag& flag : cell.flags) ADD_FAILURE() << flag.code << ": " << flag.message;
  }
  for (const AnalysisFlag& flag : result.flags) ADD_FAILURE() << flag.code << ": " << flag.message;
}

// Published inference times of NCF with TensorFlow, in seconds.
TEST(Validity, FlagsACellThatWarmsUp) {
  constexpr double kPublishedEnergies_j[] = {336, 216, 217, 205, 66, 20, 19, 19.2, 19.1, 19.3};
  const auto flags =
      analyze_changed_data([&](ExperimentRow& row) { set_package_energy(row, kPublishedEnergies_j[row.block]); });
  EXPECT_TRUE(has_flag(flags, "warm_up"));
  EXPECT_TRUE(has_flag(flags, "drift"));
  EXPECT_TRUE(has_flag(flags, "large_spread"));
}

TEST(Validity, FlagsADrift) {
  const auto flags =
      analyze_changed_data([](ExperimentRow& row) { set_package_energy(row, 100 + static_cast<double>(row.block)); });
  EXPECT_TRUE(has_flag(flags, "drift"));
}

TEST(Validity, FlagsImpossibleEnergies) {
  EXPECT_TRUE(has_flag(analyze_changed_data([](ExperimentRow& row) { set_package_energy(row, 0); }), "zero_energy"));
  EXPECT_TRUE(
      has_flag(analyze_changed_data([](ExperimentRow& row) { set_package_energy(row, -1); }), "negative_energy"));
  EXPECT_TRUE(has_flag(analyze_changed_data([](ExperimentRow& row) { set_package_energy(row, std::nullopt); }),
                       "missing_energy"));
}

TEST(Validity, FlagsOutliersWithoutRemovingThem) {
  ExperimentData data = make_undisturbed_data();
  set_package_energy(data.rows[4], 150);
  const AnalysisResult result = expect_analysis(data);
  EXPECT_TRUE(has_flag(result.cells[0].flags, "outlier"));
  EXPECT_EQ(result.cells[0].measures[0]->values.size(), 10);
  EXPECT_EQ(result.cells[0].measures[0]->outliers.size(), 1);
}

TEST(Validity, FlagsThrottlingAndStealTime) {
  EXPECT_TRUE(has_flag(analyze_changed_data([](ExperimentRow& row) { row.throttled_share = 0.3; }), "throttled"));
  EXPECT_TRUE(has_flag(analyze_changed_data([](ExperimentRow& row) { row.cpu_steal_share = 0.05; }), "stolen_time"));
  EXPECT_FALSE(has_flag(analyze_changed_data([](ExperimentRow& row) { row.cpu_steal_share = 0.001; }), "stolen_time"));
}

TEST(Validity, FlagsPausesThatDoNotReachIdlePower) {
  const auto set_powers_after_cold_start = [](ExperimentRow& row) {
    row.first.measured = MeasuredWatts(row.block == 0 ? 5.7 : 35);
  };
  EXPECT_TRUE(has_flag(analyze_changed_data(set_powers_after_cold_start), "cool_down"));
  EXPECT_FALSE(
      has_flag(analyze_changed_data([](ExperimentRow& row) { row.first.measured = MeasuredWatts(35); }), "cool_down"));
  const auto set_power_above_baseline = [](ExperimentRow& row) {
    row.first.measured = MeasuredWatts(35);
    row.baseline.measured = MeasuredWatts(20);
  };
  EXPECT_TRUE(has_flag(analyze_changed_data(set_power_above_baseline), "cool_down"));
}

TEST(Validity, DoesNotCompareEstimatedPowerWithAMeasuredBaseline) {
  const auto set_mixed_provenance_powers = [](ExperimentRow& row) {
    row.first.estimated = EstimatedWatts(350);
    row.baseline.measured = MeasuredWatts(20);
  };
  EXPECT_FALSE(has_flag(analyze_changed_data(set_mixed_provenance_powers), "cool_down"));
  const auto set_estimated_powers = [](ExperimentRow& row) {
    row.first.estimated = EstimatedWatts(350);
    row.baseline.estimated = EstimatedWatts(20);
  };
  EXPECT_TRUE(has_flag(analyze_changed_data(set_estimated_powers), "cool_down"));
}

TEST(Validity, ComparesSumsOfSamplesWithIntegration) {
  const auto with_sum = [](double sum_j) {
    return [=](ExperimentRow& row) {
      DomainEnergy gpu = make_domain_energy("gpu0", 100);
      gpu.checks = {{"nvidia-smi", "sum of samples", sum_j, 0}};
      row.domains = {gpu};
    };
  };
  EXPECT_TRUE(has_flag(analyze_changed_data(with_sum(102)), "sum_of_samples"));
  EXPECT_FALSE(has_flag(analyze_changed_data(with_sum(100.2)), "sum_of_samples"));
}

TEST(Validity, FlagsAConstantMetric) {
  ExperimentData data = make_undisturbed_data();
  data.metrics = {{"accuracy", "", true}, {"loss", "", false}};
  for (ExperimentRow& row : data.rows) row.metrics = {0.5, 0.0};
  const AnalysisResult result = expect_analysis(data);
  EXPECT_TRUE(has_flag(result.cells[0].flags, "constant"));
  EXPECT_TRUE(has_flag(result.cells[0].flags, "all_zero"));
}

TEST(Validity, ExcludesAndFlagsFailedRows) {
  ExperimentData data = make_undisturbed_data();
  data.rows[0].state = ExperimentRowState::failed;
  const AnalysisResult result = expect_analysis(data);
  EXPECT_TRUE(has_flag(result.cells[0].flags, "failed_rows"));
  EXPECT_EQ(result.cells[0].n, 9);
  EXPECT_TRUE(has_flag(result.flags, "unbalanced"));
}

TEST(Validity, FlagsConsecutiveRepetitions) {
  ExperimentData data = make_undisturbed_data();
  std::stable_sort(data.rows.begin(), data.rows.end(),
                   [](const ExperimentRow& a, const ExperimentRow& b) { return a.levels < b.levels; });
  for (std::size_t i = 0; i < data.rows.size(); ++i) data.rows[i].number = i;
  EXPECT_TRUE(has_flag(expect_analysis(data).flags, "not_interleaved"));
}

TEST(Validity, FlagsPairsByNumberAsArbitrary) {
  ExperimentData data = make_undisturbed_data();
  data.is_blocked = false;
  EXPECT_TRUE(has_flag(expect_analysis(data).flags, "arbitrary_pairing"));
}

TEST(Validity, FlagsLevelsThatNeverSharedANode) {
  ExperimentData data = make_undisturbed_data();
  for (ExperimentRow& row : data.rows) row.node = row.levels[0] == 0 ? "n1" : "n2";
  EXPECT_TRUE(has_flag(expect_analysis(data).flags, "nodes_confounded"));
}

}  // namespace
}  // namespace joulemap::experiment
