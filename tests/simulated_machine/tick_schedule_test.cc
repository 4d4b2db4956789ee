// SPDX-License-Identifier: Apache-2.0
#include "tick_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace joulemap::simulated {
namespace {

TEST(TickSchedule, WithoutJitterIsARegularGrid) {
  const TickSchedule schedule{5'000, 1'000'000, 0, 1};
  EXPECT_EQ(schedule.tick_time_ns(0), 5'000);
  EXPECT_EQ(schedule.tick_time_ns(7), 7'005'000);
}

TEST(TickSchedule, JitterHasTheGivenDeviationAndDoesNotAccumulate) {
  const TickSchedule schedule;
  constexpr std::int64_t kTicks = 50'000;
  double sum = 0;
  double squares = 0;
  for (std::int64_t tick = 0; tick < kTicks; ++tick) {
    const auto deviation_ns = static_cast<double>(schedule.tick_time_ns(tick) - tick * schedule.period_ns);
    sum += deviation_ns;
    squares += deviation_ns * deviation_ns;
  }
  EXPECT_NEAR(sum / kTicks, 0, 1'000);
  EXPECT_NEAR(std::sqrt(squares / kTicks), 50'000, 1'000);
}

TEST(TickSchedule, TicksStayInOrderForAnyJitter) {
  TickSchedule schedule;
  schedule.jitter_ns = 100 * schedule.period_ns;
  for (std::int64_t tick = 0; tick < 10'000; ++tick) {
    EXPECT_LT(schedule.tick_time_ns(tick), schedule.tick_time_ns(tick + 1));
  }
}

TEST(TickSchedule, TwoCopiesAgreeOnEveryInstant) {
  const TickSchedule original_schedule{0, 1'000'000, 50'000, 3};
  const TickSchedule copy = original_schedule;
  const TickSchedule other_schedule{0, 1'000'000, 50'000, 4};
  EXPECT_EQ(original_schedule.tick_time_ns(1234), copy.tick_time_ns(1234));
  EXPECT_NE(original_schedule.tick_time_ns(1234), other_schedule.tick_time_ns(1234));
}

TEST(TickSchedule, ContinuesWithTheNextTickAfterOversleeping) {
  const TickSchedule schedule;
  for (std::int64_t tick = 1; tick < 1'000; ++tick) {
    EXPECT_EQ(schedule.first_tick_after(schedule.tick_time_ns(tick)), tick + 1);
    EXPECT_EQ(schedule.first_tick_after(schedule.tick_time_ns(tick) - 1), tick);
  }
}

TEST(TickSchedule, AMachineIsFrozenWhileItsSimulatorOversleeps) {
  const TickSchedule schedule{0, 1'000'000, 50'000, 1};
  EXPECT_EQ(schedule.running_since_ns(7'000'000, 8'100'000), 7'000'000) << "an ordinary tick";
  EXPECT_EQ(schedule.running_since_ns(7'000'000, 8'999'999), 7'000'000) << "and a late one";
  EXPECT_EQ(schedule.running_since_ns(7'000'000, 300'000'000), 298'000'000);
}

}  // namespace
}  // namespace joulemap::simulated
