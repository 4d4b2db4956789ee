// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/sensor_model.h"

#include <gtest/gtest.h>

#include "attribution/gpu/power_regression.h"
#include "attribution/ledger/recorded_energy.h"
#include "support/simulated_gpu.h"

namespace joulemap::attribution {
namespace {

Channel channel(std::string name, std::string device, Quantity quantity) {
  Channel result;
  result.name = std::move(name);
  result.device = std::move(device);
  result.quantity = quantity;
  return result;
}

ChannelCalibration channel_calibration(std::string name, std::string device, std::optional<double> lag_s) {
  ChannelCalibration calibration;
  calibration.channel = std::move(name);
  calibration.device = std::move(device);
  calibration.lag_s = lag_s;
  return calibration;
}

const std::vector<Channel> kChannels = {channel("gpu0-energy", "GPU-0", Quantity::energy),
                                        channel("gpu0-power-history", "GPU-0", Quantity::power_history),
                                        channel("gpu1-energy", "GPU-1", Quantity::energy)};

KernelTimeline make_timeline(const SimulatedRun& run) {
  KernelTimeline timeline(run.busy_s.size());
  for (const SimulatedKernel& kernel : run.kernels) {
    timeline.add_kernel(kernel.start_ns, kernel.end_ns, static_cast<std::uint16_t>(kernel.kind));
  }
  timeline.finish();
  return timeline;
}

std::vector<EnergyPoint> counter_updates_of(const SimulatedRun& run) {
  const std::vector<Channel> channels = {SimulatedGpu::channel()};
  RecordedEnergy energy(channels, {run.begin_ns, run.end_ns}, 10);
  for (const Sample& sample : run.samples) energy.add(sample);
  return energy.finish().domain_curves.at(0).counter_updates;
}

TEST(SensorModel, UsesTheCalibrationOfTheDevice) {
  ChannelCalibration counter = channel_calibration("gpu0-energy", "GPU-0", 0.014);
  counter.lag_low_s = 0.012;
  counter.lag_high_s = 0.017;
  counter.gain_spread = 0.008;
  ChannelCalibration history = channel_calibration("gpu0-power-history", "GPU-0", 0.001);
  history.time_constant_s = 0.015;
  const std::vector<ChannelCalibration> calibrations = {counter, history,
                                                        channel_calibration("gpu1-energy", "GPU-1", 0.03)};
  const SensorModel sensor_model = find_calibrated_sensor_model(calibrations, kChannels, "GPU-0");
  ASSERT_TRUE(sensor_model.counter_lag && sensor_model.history_lag);
  EXPECT_EQ(sensor_model.counter_lag_ns(), 14'000'000);
  EXPECT_EQ(sensor_model.counter_lag->low_ns, 12'000'000);
  EXPECT_EQ(sensor_model.counter_lag->high_ns, 17'000'000);
  EXPECT_EQ(sensor_model.history_lag->time_constant_ns, 15'000'000);
  EXPECT_DOUBLE_EQ(sensor_model.gain_spread, 0.008);
}

TEST(SensorModel, UsesDefaultsWithoutACalibration) {
  const std::vector<ChannelCalibration> calibrations = {channel_calibration("gpu0-energy", "GPU-0", std::nullopt),
                                                        channel_calibration("gpu0-power-history", "GPU-0", 0.001),
                                                        channel_calibration("other-energy", "GPU-0", 0.03)};
  const SensorModel sensor_model = find_calibrated_sensor_model(calibrations, kChannels, "GPU-0");
  EXPECT_FALSE(sensor_model.counter_lag);
  EXPECT_FALSE(sensor_model.history_lag) << "a lag alone does not say what it remembers";
  EXPECT_EQ(sensor_model.counter_lag_ns(), kUsualCounterLag_ns);
  EXPECT_DOUBLE_EQ(sensor_model.gain_spread, kDefaultGainRelativeSd);
}

// Every lag fits a noisy run of a steady loop: the fit then takes the calibrated lag, whose uncertainty is small.
TEST(SensorModel, SuppliesALagThatTheRunCannotIdentify) {
  SimulatedGpu gpu({.noise_j = 30}, 1);
  const SimulatedRun run = gpu.steady_loop(20, 5);
  const KernelTimeline timeline = make_timeline(run);
  const std::vector<EnergyPoint> updates = counter_updates_of(run);

  const std::optional<PowerFit> uncalibrated_fit = fit_powers(timeline, {updates});
  SensorModel calibrated_model;
  calibrated_model.counter_lag = CalibratedLag{14'000'000, 12'000'000, 17'000'000, 0};
  calibrated_model.gain_spread = 0.02;
  const std::optional<PowerFit> calibrated = fit_powers(timeline, {updates, {}, {}, calibrated_model});
  ASSERT_TRUE(uncalibrated_fit && calibrated);
  ASSERT_FALSE(uncalibrated_fit->is_lag_identified);
  EXPECT_EQ(uncalibrated_fit->lag_ns, kUsualCounterLag_ns);
  EXPECT_EQ(calibrated->lag_ns, 14'000'000);
  EXPECT_EQ(calibrated->counter_lag_ns, 14'000'000);
  EXPECT_EQ(calibrated->lag_low_ns, 12'000'000);
  EXPECT_EQ(calibrated->lag_high_ns, 17'000'000);
  EXPECT_FALSE(calibrated->is_lag_identified);
  const auto [low, high] = central_interval(calibrated->gain_replicates, 0.9);
  EXPECT_NEAR(high - low, 2 * 1.645 * 0.02, 0.01);
}

// A mixture identifies its lag better than the calibration does.
TEST(SensorModel, YieldsToALagThatTheRunIdentifies) {
  SimulatedGpu gpu({}, 2);
  const SimulatedRun run = gpu.simulate_mixture(20);
  const KernelTimeline timeline = make_timeline(run);
  const std::vector<EnergyPoint> updates = counter_updates_of(run);
  SensorModel calibrated_model;
  calibrated_model.counter_lag = CalibratedLag{40'000'000, 39'000'000, 41'000'000, 0};
  const std::optional<PowerFit> fit = fit_powers(timeline, {updates, {}, {}, calibrated_model});
  ASSERT_TRUE(fit);
  EXPECT_TRUE(fit->is_lag_identified);
  EXPECT_NEAR(static_cast<double>(fit->lag_ns), 10e6, 4e6);
}

}  // namespace
}  // namespace joulemap::attribution
