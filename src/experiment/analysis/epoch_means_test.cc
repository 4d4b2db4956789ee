// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/epoch_means.h"

#include <gtest/gtest.h>

#include "experiment/analysis/analyze.h"

namespace joulemap::experiment {
namespace {

ExperimentRow make_row(std::size_t block, double power_w, double temperature_c) {
  ExperimentRow row;
  row.number = block;
  row.block = block;
  row.levels = {0};
  row.state = ExperimentRowState::done;
  row.elapsed_s = 10;
  DomainEnergy gpu;
  gpu.name = "gpu0";
  gpu.joules = 10 * power_w;
  gpu.provenance = Provenance::measured;
  gpu.is_counted = true;
  row.domains = {gpu};
  EpochResult first_epoch{0, 4, 4 * power_w, {0.5, std::nullopt}};
  first_epoch.gauges[3] = temperature_c;
  EpochResult second_epoch{4, 6, std::nullopt, {0.75, std::nullopt}};
  row.epochs = {first_epoch, second_epoch};
  row.metrics = {0.75, 80};
  return row;
}

ExperimentData make_two_row_data() {
  ExperimentData data;
  data.name = "epochs";
  data.factors = {{"model", {"a"}, true}};
  data.metrics = {{"accuracy", "", true}, {"never", "", true}};
  data.rows = {make_row(0, 100, 60), make_row(1, 200, 70)};
  return data;
}

TEST(EpochMeans, EpochMeansHaveEnergyPowerGaugesAndMetricsOfEachEpoch) {
  const Result<AnalysisResult> result = analyze(make_two_row_data(), {.resample_count = 10});
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->epoch_columns.size(), 2U) << "a column without values is left out";
  EXPECT_EQ(result->epoch_columns[0].name, "temperature");
  EXPECT_EQ(result->epoch_columns[0].unit, "degC");
  EXPECT_EQ(result->epoch_columns[1].name, "accuracy");
  const std::vector<EpochMean>& epochs = result->cells[0].epoch_means;
  ASSERT_EQ(epochs.size(), 2U);
  EXPECT_EQ(epochs[0].n, 2U);
  EXPECT_EQ(epochs[0].power_w, 150);
  EXPECT_EQ(epochs[0].energy_j, 600);
  EXPECT_EQ(epochs[0].time_s, 4);
  EXPECT_EQ(epochs[0].values[0], 65);
  EXPECT_EQ(epochs[0].values[1], 0.5);
  EXPECT_EQ(epochs[1].number, 2U);
  EXPECT_FALSE(epochs[1].power_w) << "unknown, not 0";
  EXPECT_FALSE(epochs[1].values[0]);
  EXPECT_EQ(epochs[1].values[1], 0.75);
}

TEST(EpochMeans, EpochMeansAreEmptyWithoutEpochs) {
  ExperimentData data = make_two_row_data();
  for (ExperimentRow& row : data.rows) row.epochs.clear();
  const Result<AnalysisResult> result = analyze(data, {.resample_count = 10});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->epoch_columns.empty());
  EXPECT_TRUE(result->cells[0].epoch_means.empty());
}

}  // namespace
}  // namespace joulemap::experiment
