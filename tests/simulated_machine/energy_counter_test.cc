// SPDX-License-Identifier: Apache-2.0
#include "energy_counter.h"

#include <gtest/gtest.h>

namespace joulemap::simulated {
namespace {

constexpr std::uint64_t kUnreachedWrap_uj = 262'143'328'850;

TEST(EnergyCounter, StartsAtTheGivenValue) { EXPECT_EQ(EnergyCounter(1000, kUnreachedWrap_uj).reading_uj(0), 1000U); }

TEST(EnergyCounter, MovesInWholeQuantaOnly) {
  const EnergyCounter counter(0, kUnreachedWrap_uj);
  EXPECT_EQ(counter.reading_uj(61.0e-6), 0U);
  EXPECT_EQ(counter.reading_uj(61.1e-6), 61U);
  EXPECT_EQ(counter.reading_uj(122.0e-6), 61U);
  EXPECT_EQ(counter.reading_uj(122.1e-6), 122U);
}

TEST(EnergyCounter, IsNeverMoreThanAQuantumBehindTheTruth) {
  const EnergyCounter counter(0, kUnreachedWrap_uj);
  for (double true_energy_j = 0; true_energy_j < 1000; true_energy_j += 0.7318) {
    const double lag_uj = true_energy_j * 1e6 - static_cast<double>(counter.reading_uj(true_energy_j));
    EXPECT_GE(lag_uj, 0);
    EXPECT_LE(lag_uj, kQuantumUj + 1);  // and less than 1 uJ for whole microjoules
  }
}

TEST(EnergyCounter, WrapsAtItsMaximum) {
  const EnergyCounter counter(999'000, 1'000'000);
  EXPECT_EQ(counter.reading_uj(0.0009), 999'000U + 854U);
  EXPECT_EQ(counter.reading_uj(0.0011), 98U);  // 18 quanta, 1098 uJ
  EXPECT_LT(counter.reading_uj(12.345), 1'000'000U);
}

TEST(EnergyCounter, WrapsRepeatedly) {
  const EnergyCounter counter(0, 1'000'000);
  const EnergyCounter unwrapped_counter(0, kUnreachedWrap_uj);
  for (double true_energy_j = 0; true_energy_j < 50; true_energy_j += 0.37) {
    EXPECT_EQ(counter.reading_uj(true_energy_j), unwrapped_counter.reading_uj(true_energy_j) % 1'000'000);
  }
}

TEST(EnergyCounter, AcceptsAStartBeyondItsMaximum) {
  EXPECT_EQ(EnergyCounter(2'500'000, 1'000'000).reading_uj(0), 500'000U);
}

TEST(EnergyCounter, ContinuesFromZeroAfterARestart) {
  EnergyCounter counter(123'456'789, kUnreachedWrap_uj);
  counter.restart_at(10);
  EXPECT_EQ(counter.reading_uj(10), 0U);
  EXPECT_NEAR(static_cast<double>(counter.reading_uj(12)), 2e6, kQuantumUj + 1);
}

TEST(EnergyCounter, RestartsEvenAfterManyWraps) {
  EnergyCounter counter(77, 1'000'000);
  counter.restart_at(1234.5);
  EXPECT_EQ(counter.reading_uj(1234.5), 0U);
}

TEST(EnergyCounter, StepsBackOnceAndContinues) {
  EnergyCounter counter(50'000'000, kUnreachedWrap_uj);
  const std::uint64_t previous_uj = counter.reading_uj(1);
  counter.step_back(5'000'000);
  EXPECT_EQ(counter.reading_uj(1), previous_uj - 5'000'000);
  EXPECT_GT(counter.reading_uj(2), counter.reading_uj(1));
}

}  // namespace
}  // namespace joulemap::simulated
