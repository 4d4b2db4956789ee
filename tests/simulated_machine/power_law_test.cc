// SPDX-License-Identifier: Apache-2.0
#include "power_law.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace joulemap::simulated {
namespace {

LawSettings noiseless_settings() {
  LawSettings settings;
  settings.noise = 0;
  return settings;
}

TEST(PowerLaw, AnIdleMachineHasIdlePower) {
  const SocketPower power = compute_socket_power(noiseless_settings(), 0, 0);
  EXPECT_DOUBLE_EQ(power.package_w, 18);
  EXPECT_DOUBLE_EQ(power.core_w, 9);
  EXPECT_DOUBLE_EQ(power.dram_w, 3);
  EXPECT_DOUBLE_EQ(power.dynamic_w, 0);
}

TEST(PowerLaw, AMachineWithAllCpusBusyHasMaximumPower) {
  const SocketPower power = compute_socket_power(noiseless_settings(), 1, 0);
  EXPECT_DOUBLE_EQ(power.package_w, 95);
  EXPECT_DOUBLE_EQ(power.core_w, 86);
  EXPECT_DOUBLE_EQ(power.dram_w, 9);
  EXPECT_DOUBLE_EQ(power.dynamic_w, 77);
}

TEST(PowerLaw, TheFirstBusyCpuCostsMoreThanTheLast) {
  const double half_load_w = compute_socket_power(noiseless_settings(), 0.5, 0).package_w;
  EXPECT_DOUBLE_EQ(half_load_w, 18 + 77 * std::pow(0.5, 0.8));
  EXPECT_GT(half_load_w - 18, 95 - half_load_w);
}

TEST(PowerLaw, ClampsUtilisationBetweenZeroAndOne) {
  EXPECT_DOUBLE_EQ(compute_socket_power(noiseless_settings(), 1.7, 0).package_w, 95);
  EXPECT_DOUBLE_EQ(compute_socket_power(noiseless_settings(), -0.1, 0).package_w, 18);
}

TEST(PowerLaw, CorePowerIsNeverNegative) {
  LawSettings settings = noiseless_settings();
  settings.idle_w = 4;
  EXPECT_DOUBLE_EQ(compute_socket_power(settings, 0, 0).core_w, 0);
}

TEST(PowerLaw, NoiseScalesIdleAndDynamicPowerButNotDram) {
  const SocketPower power = compute_socket_power(noiseless_settings(), 1, 0.1);
  EXPECT_DOUBLE_EQ(power.package_w, 95 * 1.1);
  EXPECT_DOUBLE_EQ(power.dynamic_w, 77 * 1.1);
  EXPECT_DOUBLE_EQ(power.dram_w, 9);
}

TEST(PowerLaw, PlatformPowerExceedsItsPackagesAndMemory) {
  LawSettings settings = noiseless_settings();
  settings.sockets = 2;
  PowerLaw law(settings);
  const MachinePower& power = law.step(1, 0.001);
  ASSERT_EQ(power.sockets.size(), 2U);
  EXPECT_DOUBLE_EQ(power.psys_w, 1.08 * (2 * 95 + 2 * 9) + 5);
  EXPECT_DOUBLE_EQ(power.dynamic_w, 2 * 77);
}

TEST(PowerLaw, SocketsHaveIndependentNoise) {
  LawSettings settings;
  settings.sockets = 2;
  PowerLaw law(settings);
  const MachinePower& power = law.step(0.5, 0.001);
  EXPECT_NE(power.sockets[0].package_w, power.sockets[1].package_w);
}

TEST(PowerLaw, TheSameSeedGivesTheSameWatts) {
  PowerLaw reference_law{LawSettings{}};
  PowerLaw same_seed_law{LawSettings{}};
  LawSettings other_settings;
  other_settings.seed = 99;
  PowerLaw other_seed_law{other_settings};
  for (int step = 0; step < 100; ++step) {
    const double watts = reference_law.step(0.3, 0.001).sockets[0].package_w;
    EXPECT_EQ(watts, same_seed_law.step(0.3, 0.001).sockets[0].package_w);
    EXPECT_NE(watts, other_seed_law.step(0.3, 0.001).sockets[0].package_w);
  }
}

struct NoiseFigures {
  double mean = 0;
  double deviation = 0;
  double correlation = 0;  // lag-1 autocorrelation
};

NoiseFigures compute_noise_figures(double step_s) {
  constexpr int kSteps = 200'000;
  CorrelatedNoise noise(0.03, 7);
  double sum = 0;
  double squares = 0;
  double products = 0;
  double previous = noise.next(step_s);
  for (int step = 0; step < kSteps; ++step) {
    const double value = noise.next(step_s);
    sum += value;
    squares += value * value;
    products += value * previous;
    previous = value;
  }
  return {sum / kSteps, std::sqrt(squares / kSteps), products / squares};
}

TEST(CorrelatedNoise, HasTheGivenDeviationForAnyTimeStep) {
  for (const double step_s : {0.0005, 0.001, 0.01}) {
    EXPECT_NEAR(compute_noise_figures(step_s).mean, 0, 0.002) << step_s;
    EXPECT_NEAR(compute_noise_figures(step_s).deviation, 0.03, 0.001) << step_s;
  }
}

TEST(CorrelatedNoise, DecorrelatesOverFiveMilliseconds) {
  EXPECT_NEAR(compute_noise_figures(0.001).correlation, std::exp(-0.2), 0.01);
  EXPECT_NEAR(compute_noise_figures(0.005).correlation, std::exp(-1), 0.01);
}

}  // namespace
}  // namespace joulemap::simulated
