// SPDX-License-Identifier: Apache-2.0
//
// Calibrates a simulated GPU in virtual time: the calibration loads the GPU of a fake CUDA driver, and a fake NVML
// shows the load with a known lag, averaging window, time constant and gain. Other load of this machine has no effect.
#include "calibration/calibration.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "sampling/open_sensors.h"
#include "support/sysroots.h"
#include "support/temporary_directory.h"
#include "support/virtual_clock.h"

namespace joulemap::calibration {
namespace {

constexpr double kIdle_w = 76;
constexpr double kContextPower_w = 130;
constexpr double kLoaded_w = 480;

class GpuCalibrationTest : public testing::Test {
 protected:
  ~GpuCalibrationTest() override {
    for (const char* name : {"JOULEMAP_NVML", "JOULEMAP_FAKE_NVML", "JOULEMAP_FAKE_CUDA"}) ::unsetenv(name);
  }

  CalibrateResult calibrate_fake_gpu(const std::string& traits, const calibration::SquareWavePlan& waves = {}) {
    const VirtualClock clock;
    const TemporaryDirectory folder;
    const std::string device = "device GPU-11111111-2222-3333-4444-555555555555\n";
    const std::string log = folder.path() + "/load-log";
    const std::string load = "load " + log + " 76 130 480\n";
    ::setenv("JOULEMAP_NVML", JOULEMAP_FAKE_NVML_LIBRARY, 1);
    ::setenv("JOULEMAP_FAKE_NVML", folder.write("nvml", device + load + traits).c_str(), 1);
    ::setenv("JOULEMAP_FAKE_CUDA", folder.write("cuda", device + "log " + log + "\n").c_str(), 1);
    Result<sampling::OpenSensors> opened_sensors =
        sampling::open_sensors({.root = SystemRoot{sysroot("no-sensors")}, .sensors = "nvml"});
    EXPECT_TRUE(opened_sensors) << opened_sensors.error().message;
    sampling::Sampler sampler(std::move(opened_sensors->sensors));
    return calibrate(sampler, {.idle_duration_ns = 3 * kNanosecondsPerSecond,
                               .cuda_library = JOULEMAP_FAKE_CUDA_LIBRARY,
                               .square_wave_plan = waves});
  }
};

std::map<std::string, ChannelCalibration> index_findings_by_channel(const CalibrateResult& result) {
  std::map<std::string, ChannelCalibration> findings;
  for (const ChannelCalibration& finding : result.findings) findings[finding.channel] = finding;
  return findings;
}

TEST_F(GpuCalibrationTest, SquareWavesIdentifyTheResponseOfEverySensor) {
  const CalibrateResult result = calibrate_fake_gpu(
      "counter_lag_ms 10\ninstant_window_ms 30\ninstant_gain 1.0076\nhistory_memory_ms 12\nsleep 0.8 100\n"
      "counter_spin_us 2000\n");
  EXPECT_EQ(result.loaded_domains, std::vector<std::string>{"gpu0"});
  EXPECT_FALSE(result.diagnostics.contains("gpu_not_loaded"));
  EXPECT_FALSE(result.diagnostics.contains("lag_not_found"));
  const auto findings = index_findings_by_channel(result);
  const ChannelCalibration& counter = findings.at("gpu0-energy");
  const ChannelCalibration& instant = findings.at("gpu0-power-instant");
  const ChannelCalibration& average = findings.at("gpu0-power-average");
  const ChannelCalibration& history = findings.at("gpu0-power-history");

  EXPECT_NEAR(counter.lag_s.value(), 0.010, 0.003);
  EXPECT_LT(counter.lag_low_s.value(), *counter.lag_s);
  EXPECT_GT(counter.lag_high_s.value(), *counter.lag_s);
  EXPECT_LT(*counter.lag_high_s, *counter.lag_low_s + 0.01);
  EXPECT_FALSE(counter.window_s || counter.time_constant_s);
  EXPECT_NEAR(instant.window_s.value(), 0.030, 0.006);
  EXPECT_NEAR(instant.lag_s.value(), 0, 0.005);
  EXPECT_FALSE(instant.time_constant_s);
  EXPECT_NEAR(average.window_s.value(), 1, 0.05);
  EXPECT_NEAR(history.time_constant_s.value(), 0.012, 0.002);
  EXPECT_NEAR(history.lag_s.value(), 0, 0.003);
  EXPECT_FALSE(history.window_s);
  for (const ChannelCalibration& finding : {counter, instant, average, history}) {
    EXPECT_NEAR(finding.idle_w.value(), kIdle_w, 0.02 * kIdle_w) << finding.channel;
    EXPECT_NEAR(finding.active_idle_w.value(), kContextPower_w, 0.03 * kContextPower_w) << finding.channel;
    EXPECT_NEAR(finding.loaded_w.value(), kLoaded_w, 0.03 * kLoaded_w) << finding.channel;
  }
  EXPECT_NEAR(instant.gain.value(), 1.0076, 0.004);
  EXPECT_EQ(instant.gain_reference_channel, "gpu0-energy");
  EXPECT_NEAR(history.gain.value(), 1, 0.004);
  EXPECT_FALSE(counter.gain);
  EXPECT_NEAR(counter.gain_spread.value(), 0.005, 0.002);
  EXPECT_NEAR(history.settle_s.value(), 0, 0.03);
  EXPECT_NEAR(history.sleep_s.value(), 0.8, 0.06);
  EXPECT_NEAR(history.sleep_w.value(), 100, 5);
}

TEST_F(GpuCalibrationTest, GpuCalibrationIsReproducible) {
  calibration::SquareWavePlan short_plan;
  short_plan.active_idle_ns = short_plan.full_load_ns = short_plan.idle_after_load_ns =
      short_plan.idle_after_release_ns = kNanosecondsPerSecond;
  short_plan.total_waves_ns = 2 * kNanosecondsPerSecond;
  const auto first_findings = index_findings_by_channel(calibrate_fake_gpu("counter_lag_ms 10\n", short_plan));
  const auto second_findings = index_findings_by_channel(calibrate_fake_gpu("counter_lag_ms 10\n", short_plan));
  ASSERT_TRUE(first_findings.at("gpu0-energy").loaded_w);
  for (const auto& [channel, finding] : first_findings) {
    EXPECT_EQ(finding.lag_s, second_findings.at(channel).lag_s) << channel;
    EXPECT_EQ(finding.refresh_s, second_findings.at(channel).refresh_s) << channel;
    EXPECT_EQ(finding.loaded_w, second_findings.at(channel).loaded_w) << channel;
  }
}

}  // namespace
}  // namespace joulemap::calibration
