// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger/recorded_energy.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "support/simulated_gpu.h"

namespace joulemap::attribution {
namespace {

double read_energy_between_j(const SimulatedRun& run, std::int64_t from_ns, std::int64_t to_ns) {
  const std::vector<Channel> channels = {SimulatedGpu::channel()};
  RecordedEnergy energy(channels, {from_ns, to_ns}, 1);
  for (const Sample& sample : run.samples) energy.add(sample);
  return energy.finish().domain_table.rows.at(0).joules.value_or(0);
}

// A loop of 2 ms steps has the same power in any half second.
TEST(RecordedEnergy, WindowsUnderConstantLoadHaveItsPowerHoweverShort) {
  SimulatedGpu gpu({.noise_j = 0, .burst_spread = 0}, 5);
  const SimulatedRun run = gpu.steady_loop(30, 1);
  const std::int64_t from_ns = run.begin_ns + 5'000 * kNanosecondsPerMillisecond;
  const double mean_w = read_energy_between_j(run, from_ns, from_ns + 20'000 * kNanosecondsPerMillisecond) / 20;
  for (std::int64_t i = 0; i < 40; ++i) {
    const std::int64_t begin_ns = from_ns + i * 473 * kNanosecondsPerMillisecond;
    EXPECT_NEAR(read_energy_between_j(run, begin_ns, begin_ns + 450 * kNanosecondsPerMillisecond) / 0.45 / mean_w, 1,
                0.01)
        << i;
  }
}

TEST(RecordedEnergy, AdjacentWindowsSumToTheWhole) {
  SimulatedGpu gpu({}, 6);
  const SimulatedRun run = gpu.simulate_mixture(30);
  const std::int64_t from_ns = run.begin_ns + 5'000 * kNanosecondsPerMillisecond;
  double sum_j = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    sum_j += read_energy_between_j(run, from_ns + i * 450 * kNanosecondsPerMillisecond,
                                   from_ns + (i + 1) * 450 * kNanosecondsPerMillisecond);
  }
  EXPECT_NEAR(sum_j / read_energy_between_j(run, from_ns, from_ns + 18'000 * kNanosecondsPerMillisecond), 1, 0.002);
}

}  // namespace
}  // namespace joulemap::attribution
