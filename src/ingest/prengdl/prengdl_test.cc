// SPDX-License-Identifier: Apache-2.0
#include "ingest/prengdl/prengdl.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace joulemap::ingest {
namespace {

constexpr std::string_view kPerfText =
    "\n Performance counter stats for 'system wide':\n\n"
    "        188,753.25 Joules power/energy-pkg/                \n"
    "         25,541.41 Joules power/energy-ram/                \n\n"
    "    2575.763113276 seconds time elapsed\n\n";

class PrengdlTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "measurements_train");
  }
  void write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ / "measurements_train" / name) << text;
  }
  std::filesystem::path folder_;
};

TEST_F(PrengdlTest, ReadsNumbersOfAnyLocale) {
  const PerfEnergies english_energies = parse_perf_energies(kPerfText);
  EXPECT_EQ(english_energies.package_j, 188'753.25);
  EXPECT_EQ(english_energies.dram_j, 25'541.41);
  EXPECT_EQ(english_energies.elapsed_s, 2575.763113276);
  EXPECT_EQ(parse_perf_energies(" 188.753,25 Joules power/energy-pkg/").package_j, 188'753.25);
  EXPECT_FALSE(parse_perf_energies("<not supported> Joules power/energy-pkg/").package_j);
}

TEST_F(PrengdlTest, ParsesModelFrameworkAndRepetitionFromNames) {
  write("mask_rcnn_PyTorch_perf_1.txt", kPerfText);
  write("mask_rcnn_PyTorch_nvidia_smi_1.txt", "100.00 W\n200.00 W\n");
  write("mask_rcnn_TensorFlow_perf_10.txt", kPerfText);
  write("mask_rcnn_TensorFlow_nvidia_smi_10.txt", "[N/A]\n150.00 W\n");
  write("README.txt", "nothing");
  const Result<ExperimentData> data = read_prengdl(folder_);
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ(data->rows.size(), 2);
  EXPECT_EQ(data->factors[0].levels, std::vector<std::string>{"train"});
  EXPECT_EQ(data->factors[1].levels, std::vector<std::string>{"mask_rcnn"});
  EXPECT_EQ(data->factors[2].levels, (std::vector<std::string>{"PyTorch", "TensorFlow"}));
  EXPECT_EQ(data->rows[1].block, 9);
  EXPECT_FALSE(data->is_blocked);
  EXPECT_TRUE(data->rows[1].diagnostics.contains("samples_dropped"));
}

TEST_F(PrengdlTest, IntegratesGpuEnergyAndStoresThePublishedSumAsACheck) {
  write("ncf_PyTorch_perf_1.txt",
        "10 Joules power/energy-pkg/\n1 Joules power/energy-ram/\n4.0 seconds time elapsed\n");
  write("ncf_PyTorch_nvidia_smi_1.txt", "100.00 W\n200.00 W\n300.00 W\n");
  const Result<ExperimentData> data = read_prengdl(folder_);
  ASSERT_TRUE(data);
  const ExperimentRow& row = data->rows.front();
  EXPECT_EQ(row.domains[2].joules, 800);
  ASSERT_EQ(row.domains[2].checks.size(), 1);
  EXPECT_EQ(row.domains[2].checks.front().joules, 600);
  EXPECT_EQ(joules_of(total_energy(row.domains).measured), 811);
  EXPECT_EQ(row.first.measured, MeasuredWatts(100));
}

TEST_F(PrengdlTest, AMissingFileIsReportedAndLeavesTheRowWithoutEnergy) {
  write("ncf_PyTorch_perf_1.txt", kPerfText);
  const Result<ExperimentData> data = read_prengdl(folder_);
  ASSERT_TRUE(data);
  EXPECT_FALSE(energy_if_complete(total_energy(data->rows.front().domains)));
  EXPECT_TRUE(data->rows.front().elapsed_s);
  EXPECT_TRUE(data->rows.front().diagnostics.contains("missing_file"));
}

TEST_F(PrengdlTest, AFolderWithoutSuchFilesIsAnError) {
  EXPECT_FALSE(read_prengdl(folder_));
  EXPECT_FALSE(read_prengdl(folder_ / "not there"));
}

}  // namespace
}  // namespace joulemap::ingest
