// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/row_measurement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "support/temporary_directory.h"

namespace joulemap::experiment {
namespace {

// A ResNet-50 training on an H200, recorded with `joulemap record`.
constexpr const char* kRecordingPath = JOULEMAP_RECORDINGS "/../../../examples/resnet50-h200.joule";

class RowMeasurementTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(kRecordingPath, directory.path() + "/" + std::string(kRecordingFileName));
    const Status measured = fill_row_from_recording(directory.path(), {}, row);
    ASSERT_TRUE(measured) << measured.error().message;
  }
  const FunctionResult* function(std::string_view name, std::string_view device) const {
    const auto matching_function = std::ranges::find_if(row.functions, [&](const FunctionResult& candidate) {
      return candidate.name == name && candidate.device == device;
    });
    return matching_function == row.functions.end() ? nullptr : &*matching_function;
  }
  TemporaryDirectory directory;
  ExperimentRow row;
};

TEST_F(RowMeasurementTest, StoresTheFunctionsWithTheMostEnergyAndTheirCauses) {
  std::map<std::string, std::size_t> by_device;
  for (const FunctionResult& candidate : row.functions) {
    ++by_device[candidate.device];
    EXPECT_NE(candidate.name, "probe") << "no part of the run";
    EXPECT_NE(candidate.name, "background");
    ASSERT_TRUE(candidate.cause) << candidate.name;
    EXPECT_NEAR(candidate.cause->times_s.sum(), candidate.time_s, 1e-6 * candidate.time_s)
        << candidate.name << " " << candidate.device;
  }
  EXPECT_EQ(by_device.size(), 2u);
  for (const auto& [device, count] : by_device) EXPECT_LE(count, 50u) << device;
  const FunctionResult* const on_gpu = function("torch.nn.functional.conv2d", "gpu0");
  ASSERT_NE(on_gpu, nullptr);
  EXPECT_EQ(on_gpu->cause->largest_class, EnergyCauseClass::compute);
  EXPECT_EQ(on_gpu->cause->basis, CauseBasis::ledger);
  EXPECT_GT(on_gpu->energy_j.value_or(0), 0);
  const FunctionResult* const on_cpu = function("torch.nn.functional.conv2d", "cpu");
  ASSERT_NE(on_cpu, nullptr);
  EXPECT_EQ(on_cpu->cause->largest_class, EnergyCauseClass::launch);
  EXPECT_EQ(on_cpu->cause->basis, CauseBasis::ledger);
}

TEST_F(RowMeasurementTest, RowHasTheShareOfReadingsInWhichAGpuWasThrottled) {
  ASSERT_TRUE(row.throttled_share);
  EXPECT_EQ(*row.throttled_share, 0) << "it was at full speed";
}

TEST_F(RowMeasurementTest, AddsNoEstimateToMeasuredEnergy) {
  const EnergyTotals totals = total_energy(row.domains);
  ASSERT_TRUE(totals.measured && totals.estimated);
  EXPECT_EQ(totals.measured->domains, std::vector<std::string>{"gpu0"});
  EXPECT_EQ(energy_if_complete(totals)->joules, totals.measured->energy.value());
}

}  // namespace
}  // namespace joulemap::experiment
