// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ingest/epoch_logs/epoch_log.h"
#include "ingest/epoch_logs/file_name_pattern.h"
#include "ingest/epoch_logs/power_experiment.h"

namespace joulemap::ingest {
namespace {

namespace fs = std::filesystem;

// 100 W for four seconds, then 200 W for six.
constexpr std::string_view kPowerCsv =
    "timestamp, power.draw [W], temperature.gpu, memory.used [MiB], utilization.gpu [%], utilization.memory [%]\n"
    "2023/05/08 01:48:10.500, 100.00 W, 33, 0 MiB, 0 %, 0 %\n"
    "2023/05/08 01:48:14.500, 100.00 W, 40, 512 MiB, 50 %, 10 %\n"
    "2023/05/08 01:48:14.501, 200.00 W, 40, 512 MiB, 50 %, 10 %\n"
    "2023/05/08 01:48:20.500, 200.00 W, 50, 1024 MiB, 100 %, 20 %\n";
constexpr std::string_view kEpochsCsv =
    "epoch;precision;recall;accuracy;f1;timestamp\n"
    "0;0.1;0.2;0.3;0.4;2023-05-08 01:48:14\n"
    "1;0.2;0.3;0.5;0.6;2023-05-08 01:48:17\n"
    "2;0.3;0.4;0.7;0.8;2023-05-08 01:48:20\n";

class EpochLogsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  fs::path folder_;
};

TEST(FileNamePattern, ParsesAndFillsFieldsOfNames) {
  const Result<FileNamePattern> pattern = FileNamePattern::parse("run{run}-gpu-batchsize{batch}-{model}-ENERGY.csv");
  ASSERT_TRUE(pattern);
  const auto fields = pattern->match("run2-gpu-batchsize128-res-net50-ENERGY.csv");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->at("run"), "2");
  EXPECT_EQ(fields->at("batch"), "128");
  EXPECT_EQ(fields->at("model"), "res-net50");
  EXPECT_EQ(FileNamePattern::parse("{model}_{run}.csv")->make_file_name(*fields), "res-net50_2.csv");
  EXPECT_FALSE(pattern->match("run-gpu-batchsize128-x-ENERGY.csv"));
  EXPECT_FALSE(pattern->match("run2-gpu-batchsize128-x_MODEL.csv"));
}

TEST(FileNamePattern, AFieldWithValuesMatchesOnlyThem) {
  const Result<FileNamePattern> pattern = FileNamePattern::parse("{model}_{framework:pytorch|tensorflow}_{pass}.prof");
  ASSERT_TRUE(pattern);
  const auto fields = pattern->match("transformer_xl_pytorch_train.prof");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->at("model"), "transformer_xl");
  EXPECT_EQ(fields->at("framework"), "pytorch");
  EXPECT_EQ(fields->at("pass"), "train");
  EXPECT_EQ(pattern->make_file_name(*fields), "transformer_xl_pytorch_train.prof");
  EXPECT_FALSE(pattern->match("transformer_xl_jax_train.prof"));
}

TEST(FileNamePattern, RefusesAmbiguousPatterns) {
  for (const char* text :
       {"{a}{b}.csv", "{a.csv", "a}.csv", "{}.csv", "{a}-{a}.csv", "{:x}.csv", "{a:}.csv", "{a:x|}.csv"}) {
    EXPECT_FALSE(FileNamePattern::parse(text)) << text;
  }
}

TEST(EpochLog, ReadsWholeSecondsAsTheMiddleOfTheSecond) {
  const Result<EpochLog> log = parse_epoch_log(kEpochsCsv, "epochs.csv", 0);
  ASSERT_TRUE(log);
  EXPECT_EQ(log->metric_names, (std::vector<std::string>{"precision", "recall", "accuracy", "f1"}));
  ASSERT_EQ(log->epoch_ends.size(), 3);
  EXPECT_EQ(log->epoch_ends[1].time_ns % 1'000'000'000, 500'000'000);
  EXPECT_EQ(log->epoch_ends[2].metric_values[2], 0.7);
  EXPECT_TRUE(log->diagnostics.contains("epoch_times_cut"));
  EXPECT_FALSE(parse_epoch_log("a;b\n1;2\n", "other.csv", 0));
}

TEST(EpochLog, ARunThatWasAppendedMayHaveOtherColumns) {
  const Result<EpochLog> log = parse_epoch_log(
      "epoch;accuracy;timestamp\n1;0.5;2026-01-01 10:00:00\n"
      "epoch;loss;accuracy;timestamp\n1;2.0;0.6;2026-01-01 11:00:00\n",
      "epochs.csv", 0);
  ASSERT_TRUE(log);
  EXPECT_EQ(log->metric_names, (std::vector<std::string>{"accuracy", "loss"}));
  ASSERT_EQ(log->epoch_ends.size(), 2);
  EXPECT_EQ(log->epoch_ends[0].metric_values, (std::vector<std::optional<double>>{0.5, std::nullopt}));
  EXPECT_EQ(log->epoch_ends[1].metric_values, (std::vector<std::optional<double>>{0.6, 2.0}));
}

TEST(EpochLog, LowerLossIsBetter) {
  EXPECT_FALSE(is_higher_better("val_loss"));
  EXPECT_TRUE(is_higher_better("accuracy"));
}

TEST_F(EpochLogsTest, EnergyOfEpochsIsTheIntegralBetweenTheirEnds) {
  const std::string power = write("power.csv", kPowerCsv);
  const Result<ExperimentData> data = read_power_experiment({{power}, "", write("epochs.csv", kEpochsCsv), 0});
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ(data->rows.size(), 1);
  const ExperimentRow& row = data->rows.front();
  EXPECT_NEAR(joules_of(total_energy(row.domains).measured).value_or(0), 1600, 0.5);
  EXPECT_NEAR(*row.elapsed_s, 10, 1e-9);
  ASSERT_EQ(row.epochs.size(), 3);
  EXPECT_NEAR(*row.epochs[0].energy_j, 400, 0.5);
  EXPECT_NEAR(*row.epochs[1].energy_j, 600, 0.5);
  EXPECT_NEAR(*row.epochs[2].energy_j, 600, 0.5);
  EXPECT_EQ(data->metrics[2].name, "accuracy");
  EXPECT_TRUE(data->metrics[2].more_is_better);
  EXPECT_EQ(row.metrics[2], 0.7);
  EXPECT_EQ(data->metrics[4].name, "gpu_utilization");
  EXPECT_FALSE(data->metrics[4].is_compared);
  EXPECT_EQ(row.metrics[4], 50);
  EXPECT_EQ(row.metrics[6], 1024);
}

TEST_F(EpochLogsTest, EpochsHaveTheGaugesOfTheirSamplesAndRowsThePowerOverTime) {
  const std::string power = write("power.csv", kPowerCsv);
  const Result<ExperimentData> data = read_power_experiment({{power}, "", write("epochs.csv", kEpochsCsv), 0});
  ASSERT_TRUE(data) << data.error().message;
  const ExperimentRow& row = data->rows.front();
  ASSERT_EQ(row.epochs.size(), 3);
  EXPECT_EQ(row.epochs[0].gauges, (GaugeValues{25, 5, 512, 40}));
  EXPECT_EQ(row.epochs[0].metrics[4], 25) << "also as the metric gpu_utilization";
  EXPECT_EQ(row.epochs[2].gauges[3], 50);
  EXPECT_GT(row.series.slice_s, 0);
  ASSERT_EQ(row.series.channels.size(), 5);
  EXPECT_EQ(row.series.channels[0].unit, "W");
  EXPECT_EQ(row.series.channels[4].name, "temperature");
  double energy_j = 0;
  for (const std::optional<double>& watts : row.series.channels[0].values) energy_j += *watts * row.series.slice_s;
  EXPECT_NEAR(energy_j, 1600, 0.5) << "slices preserve the energy";
}

TEST_F(EpochLogsTest, ParsesFactorsFromFileNames) {
  for (const char* name : {"run1-b128-torch", "run2-b128-torch", "run1-b32-torch", "run1-b32-tf"}) {
    write(std::string(name) + "-ENERGY.csv", kPowerCsv);
    write(std::string(name) + "_MODEL.csv", kEpochsCsv);
  }
  const Result<ExperimentData> data = read_power_experiment(
      {{folder_}, "run{run}-b{batch}-{framework}-ENERGY.csv", "run{run}-b{batch}-{framework}_MODEL.csv", 0});
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ(data->rows.size(), 4);
  EXPECT_EQ(data->factors[0].levels, (std::vector<std::string>{"32", "128"}));
  EXPECT_EQ(data->factors[1].name, "framework");
  std::size_t second_run_rows = 0;
  for (const ExperimentRow& row : data->rows) {
    second_run_rows += row.block == 1 ? 1 : 0;
    EXPECT_EQ(row.epochs.size(), 3);
  }
  EXPECT_EQ(second_run_rows, 1);
  EXPECT_TRUE(data->diagnostics.contains("epoch_times_cut"));
}

TEST_F(EpochLogsTest, ReportsAMissingEpochLog) {
  write("run1-x-ENERGY.csv", kPowerCsv);
  const Result<ExperimentData> data = read_power_experiment({{folder_}, "run{run}-{m}-ENERGY.csv", "{m}.csv", 0});
  ASSERT_TRUE(data);
  EXPECT_TRUE(energy_if_complete(total_energy(data->rows.front().domains)));
  EXPECT_TRUE(data->rows.front().diagnostics.contains("epochs_missing"));
}

TEST_F(EpochLogsTest, ReportsEpochsOfAnotherTimeZone) {
  const std::string power = write("power.csv", kPowerCsv);
  const std::string epochs = write("epochs.csv", "epoch;accuracy;timestamp\n0;0.1;2023-05-08 03:48:14\n");
  const Result<ExperimentData> data = read_power_experiment({{power}, "", epochs, 0});
  ASSERT_TRUE(data);
  EXPECT_TRUE(data->rows.front().epochs.empty());
  EXPECT_TRUE(data->rows.front().diagnostics.contains("epoch_outside"));
}

TEST_F(EpochLogsTest, AFolderWithoutAPatternIsAnError) { EXPECT_FALSE(read_power_experiment({{folder_}, "", "", 0})); }

}  // namespace
}  // namespace joulemap::ingest
