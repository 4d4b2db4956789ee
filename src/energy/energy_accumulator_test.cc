// SPDX-License-Identifier: Apache-2.0
#include "energy/energy_accumulator.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace joulemap {
namespace {

constexpr std::int64_t kTick_ns = 20'000'000;
constexpr std::uint64_t kPackageRange_uj = 262'143'328'850;  // of a real package, in uJ

Channel counter(std::optional<std::uint64_t> range = kPackageRange_uj) {
  Channel channel;
  channel.scale = 1e-6;
  channel.wrap_range = range;
  return channel;
}

Reading reading(std::uint64_t raw_value, std::int64_t tick, ReadCode code = ReadCode::ok) {
  return {raw_value, tick * kTick_ns, tick * kTick_ns + 2000, code};
}

EnergyTally tally_readings(const Channel& channel, const std::vector<std::uint64_t>& values) {
  EnergyAccumulator accumulator(channel);
  for (std::size_t i = 0; i < values.size(); ++i) accumulator.add(reading(values[i], static_cast<std::int64_t>(i)));
  return accumulator.tally();
}

std::uint64_t torn(const EnergyTally& tally) { return tally.failure_counts[static_cast<std::size_t>(ReadCode::torn)]; }

TEST(EnergyAccumulator, SumsTheIncreasesOfACounter) {
  EXPECT_DOUBLE_EQ(tally_readings(counter(), {5'000'000, 6'000'000, 8'500'000}).joules, 3.5);
}

TEST(EnergyAccumulator, AddsOneRangeWhenTheCounterRolledOver) {
  const EnergyTally tally = tally_readings(counter(), {kPackageRange_uj - 1'000'000, 500'000, 1'500'000});
  EXPECT_DOUBLE_EQ(tally.joules, 2.5);
  EXPECT_EQ(tally.wrap_count, 1u);
  EXPECT_EQ(tally.reset_count, 0u);
}

TEST(EnergyAccumulator, FollowsManyWrapsOfASmallRange) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; i < 1000; ++i) values.push_back(i * 700'000 % 1'000'000);
  const EnergyTally tally = tally_readings(counter(1'000'000), values);
  EXPECT_NEAR(tally.joules, 999 * 0.7, 1e-9);
  EXPECT_EQ(tally.wrap_count, 699u);
}

TEST(EnergyAccumulator, TreatsAFallThatIsNoWrapAsAResetWithAGap) {
  const EnergyTally tally = tally_readings(counter(), {9'000'000'000, 9'001'000'000, 1'000'000, 2'000'000, 3'000'000});
  EXPECT_DOUBLE_EQ(tally.joules, 3.0);  // 1 J before, 2 J after; the energy in between is unknown
  EXPECT_EQ(tally.reset_count, 1u);
  EXPECT_EQ(tally.unknown_energy_ns, kTick_ns);
}

TEST(EnergyAccumulator, TreatsEveryFallAsAResetWhenTheRangeIsNotKnown) {
  const EnergyTally tally = tally_readings(counter(std::nullopt), {900, 1000, 10, 20, 30});
  EXPECT_EQ(tally.wrap_count, 0u);
  EXPECT_EQ(tally.reset_count, 1u);
}

TEST(EnergyAccumulator, ReportsPausesInWhichWholeRangesMayBeMissing) {
  EnergyAccumulator accumulator(counter(60'000'000));  // 60 J
  for (std::int64_t tick = 0; tick <= 50; ++tick)
    accumulator.add(reading(static_cast<std::uint64_t>(tick) * 1'000'000, tick));
  // At 50 W, two seconds exceed the range of 60 J: the value looks like a small rise, but the counter has wrapped.
  accumulator.add(reading(51'000'000, 50 + 100));
  EXPECT_EQ(accumulator.tally().possible_missed_wrap_count, 1u);
  EXPECT_EQ(accumulator.tally().unknown_energy_ns, 100 * kTick_ns);
}

TEST(EnergyAccumulator, DropsAValueThatJumpsUpAndComesBack) {
  const EnergyTally tally = tally_readings(counter(), {1'000'000, 2'000'000, 999'999'000'000, 4'000'000, 5'000'000});
  EXPECT_DOUBLE_EQ(tally.joules, 4.0);
  EXPECT_EQ(torn(tally), 1u);
  EXPECT_EQ(tally.reset_count, 0u);
}

TEST(EnergyAccumulator, DropsAHalfWrittenValueThatIsOnlySlightlyTooHigh) {
  // 123999999 -> 124000000 read as 124999999: plausible alone, contradicted by the next reading.
  const EnergyTally tally =
      tally_readings(counter(), {123'000'000, 123'999'999, 124'999'999, 124'500'000, 125'500'000});
  EXPECT_DOUBLE_EQ(tally.joules, 2.5);
  EXPECT_EQ(torn(tally), 1u);
  EXPECT_EQ(tally.reset_count, 0u);
}

TEST(EnergyAccumulator, DropsAHalfWrittenValueThatIsTooLow) {
  const EnergyTally tally = tally_readings(counter(), {123'000'000, 124'000'000, 12'400, 125'000'000, 126'000'000});
  EXPECT_DOUBLE_EQ(tally.joules, 3.0);
  EXPECT_EQ(torn(tally), 1u);
}

TEST(EnergyAccumulator, AcceptsLargeUpdatesOfASlowCounterAtAnyPollingRate) {
  // A GPU: 70 J every 100 ms, polled every millisecond.
  EnergyAccumulator accumulator(counter());
  for (std::int64_t ms = 0; ms <= 1000; ++ms) {
    const auto raw_value = static_cast<std::uint64_t>(ms / 100) * 70'000'000;
    accumulator.add({raw_value, ms * 1'000'000, ms * 1'000'000, ReadCode::ok});
  }
  EXPECT_DOUBLE_EQ(accumulator.tally().joules, 700.0);
  EXPECT_EQ(torn(accumulator.tally()), 0u);
  EXPECT_EQ(accumulator.tally().reset_count, 0u);
}

TEST(EnergyAccumulator, CountsAcrossReadsThatFailed) {
  EnergyAccumulator accumulator(counter());
  accumulator.add(reading(1'000'000, 0));
  accumulator.add(reading(0, 1, ReadCode::garbage));
  accumulator.add(reading(0, 2, ReadCode::failed));
  accumulator.add(reading(4'000'000, 3));
  EXPECT_DOUBLE_EQ(accumulator.tally().joules, 3.0);
  EXPECT_EQ(accumulator.tally().failure_counts[static_cast<std::size_t>(ReadCode::garbage)], 1u);
  EXPECT_EQ(accumulator.tally().last_read_code, ReadCode::ok);
}

TEST(EnergyAccumulator, IntegratesAGaugeByTrapezoids) {
  Channel gauge = counter();
  gauge.kind = ChannelKind::gauge;
  EnergyAccumulator accumulator(gauge);
  accumulator.add(reading(100'000'000, 0));   // 100 W
  accumulator.add(reading(200'000'000, 50));  // 200 W one second later
  accumulator.add(reading(200'000'000, 100));
  EXPECT_NEAR(accumulator.tally().joules, 150.0 + 200.0, 1e-9);
  EXPECT_NEAR(accumulator.tally().trapezoid_error_j, 50.0, 1e-9);
}

// Property: the sum is exact for any mixture of wraps and dropped reads.
TEST(EnergyAccumulator, MatchesTheTruthOfRandomCountersWithWrapsAndFailures) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::uint64_t range = 3'000'000 + random() % 1'000'000'000;
    std::uint64_t truth = random() % range;
    const std::uint64_t start = truth;
    EnergyAccumulator accumulator(counter(range));
    accumulator.add(reading(truth % range, 0));
    for (std::int64_t tick = 1; tick < 500; ++tick) {
      truth += random() % 1'000'000;  // up to 50 W
      const bool is_failed_read = random() % 10 == 0 && tick != 499;
      accumulator.add(
          reading(is_failed_read ? random() : truth % range, tick, is_failed_read ? ReadCode::failed : ReadCode::ok));
    }
    EXPECT_NEAR(accumulator.tally().joules, static_cast<double>(truth - start) * 1e-6, 1e-6);
    EXPECT_EQ(accumulator.tally().reset_count, 0u);
  }
}

}  // namespace
}  // namespace joulemap
