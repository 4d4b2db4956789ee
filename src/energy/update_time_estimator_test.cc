// SPDX-License-Identifier: Apache-2.0
#include "energy/update_time_estimator.h"
#include "base/clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace joulemap {
namespace {

constexpr std::int64_t kStart_ns = 7'000'000 * kNanosecondsPerMillisecond;  // two hours after boot

// A periodically updated value whose updates have bounded jitter and may be missed, and a reader whose reads take time.
// The true update times are known.
class UpdatingCounter {
 public:
  explicit UpdatingCounter(std::uint64_t seed) : random_(seed) {}

  double period_ns = 100e6;
  double phase_ns = 0;
  double jitter_ns = 0;
  std::function<bool(std::int64_t)> is_update_missed = [](std::int64_t) { return false; };

  std::int64_t update_time_ns(std::int64_t number) const {
    const double jitter_offset_ns = std::sin(static_cast<double>(number) * 12.9898) * jitter_ns;
    return kStart_ns + static_cast<std::int64_t>(phase_ns + static_cast<double>(number) * period_ns + jitter_offset_ns);
  }
  std::int64_t update_number_at(std::int64_t time_ns) const {
    auto number = static_cast<std::int64_t>((static_cast<double>(time_ns - kStart_ns) - phase_ns) / period_ns) + 1;
    while (update_time_ns(number) > time_ns) --number;
    return number;
  }
  std::uint64_t value_at(std::int64_t time_ns) const {
    std::int64_t number = update_number_at(time_ns);
    while (is_update_missed(number)) --number;
    return static_cast<std::uint64_t>(number + 1000);
  }
  // The update nearest to a time.
  std::int64_t nearest_update_ns(std::int64_t time_ns) const {
    const std::int64_t number = update_number_at(time_ns);
    const std::int64_t before_ns = update_time_ns(number);
    const std::int64_t after_ns = update_time_ns(number + 1);
    return time_ns - before_ns < after_ns - time_ns ? before_ns : after_ns;
  }

  // Returns the end of the read. The value is latched at a random moment of it.
  std::int64_t read(UpdateTimeEstimator& clock, std::int64_t before_ns, std::int64_t read_duration_ns) {
    const std::int64_t latched_ns = before_ns + random_below(read_duration_ns);
    clock.observe(before_ns, before_ns + read_duration_ns, value_at(latched_ns));
    return before_ns + read_duration_ns;
  }
  std::int64_t random_below(std::int64_t limit) {
    return std::uniform_int_distribution<std::int64_t>(0, limit)(random_);
  }

 private:
  std::mt19937_64 random_;
};

// Reads for `total_duration_ns`, with pauses of 1 ms. Returns the end of the last read.
std::int64_t read_densely(UpdatingCounter& counter, UpdateTimeEstimator& clock, std::int64_t from_ns,
                          std::int64_t total_duration_ns, const std::function<std::int64_t()>& read_duration_ns) {
  std::int64_t now_ns = from_ns;
  while (now_ns < from_ns + total_duration_ns)
    now_ns = counter.read(clock, now_ns + kNanosecondsPerMillisecond, read_duration_ns());
  return now_ns;
}

// One read before the next update, one in the centre of its interval, one after it.
std::int64_t read_around_next_update(UpdatingCounter& counter, UpdateTimeEstimator& clock, std::int64_t now_ns,
                                     std::int64_t read_duration_ns) {
  const UpdateInterval update = clock.next_update_after(now_ns + 2 * read_duration_ns);
  now_ns = counter.read(clock, std::max(now_ns, update.earliest_ns - read_duration_ns), read_duration_ns);
  now_ns = counter.read(clock, std::max(now_ns, update.midpoint_ns() - read_duration_ns / 2), read_duration_ns);
  return counter.read(clock, std::max(now_ns, update.latest_ns), read_duration_ns);
}

void expect_true_updates_inside(const UpdatingCounter& counter, const UpdateTimeEstimator& clock,
                                std::int64_t time_ns) {
  ASSERT_TRUE(clock.is_locked());
  for (const UpdateInterval& update : {clock.last_update_before(time_ns), clock.next_update_after(time_ns)}) {
    const std::int64_t true_update_ns = counter.nearest_update_ns(update.midpoint_ns());
    EXPECT_GE(true_update_ns, update.earliest_ns);
    EXPECT_LE(true_update_ns, update.latest_ns);
  }
}

TEST(UpdateTimeEstimator, HasNoPeriodBeforeTwoUpdates) {
  UpdatingCounter counter(1);
  UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update);
  EXPECT_FALSE(clock.has_period());
  read_densely(counter, clock, kStart_ns, 120 * kNanosecondsPerMillisecond,
               [] { return 3 * kNanosecondsPerMillisecond; });
  EXPECT_FALSE(clock.is_locked());
}

TEST(UpdateTimeEstimator, LocksOntoADenselyReadCounterAfterTwoUpdates) {
  UpdatingCounter counter(2);
  counter.phase_ns = 37e6;
  UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update);
  const std::int64_t now_ns = read_densely(counter, clock, kStart_ns, 250 * kNanosecondsPerMillisecond,
                                           [] { return 3 * kNanosecondsPerMillisecond; });
  expect_true_updates_inside(counter, clock, now_ns);
  EXPECT_NEAR(clock.period_ns(), 100e6, clock.period_uncertainty_ns());
}

// A search over all updates of a century would not end in time.
TEST(UpdateTimeEstimator, PredictsAnUpdateACenturyAway) {
  UpdatingCounter counter(2);
  counter.phase_ns = 37e6;
  UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update);
  const std::int64_t now_ns = read_densely(counter, clock, kStart_ns, 250 * kNanosecondsPerMillisecond,
                                           [] { return 3 * kNanosecondsPerMillisecond; });
  expect_true_updates_inside(counter, clock, now_ns);
  ASSERT_TRUE(clock.is_locked());
  constexpr std::int64_t kCentury_ns = 100LL * 365 * 86400 * kNanosecondsPerSecond;
  for (const std::int64_t time_ns : {kStart_ns + kCentury_ns, kStart_ns - kCentury_ns}) {
    EXPECT_GT(clock.next_update_after(time_ns).latest_ns, time_ns);
    EXPECT_LE(clock.last_update_before(time_ns).latest_ns, time_ns);
  }
}

TEST(UpdateTimeEstimator, HasNoPeriodWhenEveryReadIsNew) {
  UpdatingCounter counter(3);
  UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update);
  for (std::int64_t i = 0; i < 50; ++i)
    counter.read(clock, kStart_ns + i * 1000 * kNanosecondsPerMillisecond, 3 * kNanosecondsPerMillisecond);
  EXPECT_FALSE(clock.has_period());
  EXPECT_EQ(clock.irregular_update_count(), 0u);
}

TEST(UpdateTimeEstimator, CoversTrueUpdatesWithinTwoMillisecondsByThreeMillisecondReads) {
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t seed = 1000 + static_cast<std::uint64_t>(round);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    UpdatingCounter counter(seed);
    counter.period_ns = 100e6 * (1 + 1e-4 * static_cast<double>(counter.random_below(200) - 100) / 100);
    counter.phase_ns = static_cast<double>(counter.random_below(100 * kNanosecondsPerMillisecond));
    counter.jitter_ns = static_cast<double>(counter.random_below(90'000));
    UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update);
    std::int64_t now_ns = read_densely(counter, clock, kStart_ns, 420 * kNanosecondsPerMillisecond,
                                       [] { return 3 * kNanosecondsPerMillisecond; });
    for (int visit_index = 0; visit_index < 60; ++visit_index) {
      expect_true_updates_inside(counter, clock, now_ns);
      now_ns = read_around_next_update(counter, clock, now_ns, 3 * kNanosecondsPerMillisecond) +
               counter.random_below(std::min(1 + visit_index, 10) * 90 * kNanosecondsPerMillisecond);
    }
    expect_true_updates_inside(counter, clock, now_ns);
    EXPECT_LT(clock.known_update_half_width_ns(), 2 * kNanosecondsPerMillisecond);
    EXPECT_LE(std::abs(clock.period_ns() - counter.period_ns), clock.period_uncertainty_ns());
    EXPECT_LT(clock.period_uncertainty_ns(), 5e-4 * counter.period_ns);
    EXPECT_EQ(clock.irregular_update_count(), 0u);
  }
}

TEST(UpdateTimeEstimator, ToleratesReadsOfUpToThirtyMilliseconds) {
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t seed = 2000 + static_cast<std::uint64_t>(round);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    UpdatingCounter counter(seed);
    counter.period_ns = 100e6 * (1 + 1e-4);
    counter.phase_ns = static_cast<double>(counter.random_below(100 * kNanosecondsPerMillisecond));
    UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update);
    const auto read_duration_ns = [&] {
      return counter.random_below(20) == 0
                 ? 15 * kNanosecondsPerMillisecond + counter.random_below(15 * kNanosecondsPerMillisecond)
                 : 3 * kNanosecondsPerMillisecond;
    };
    const std::int64_t now_ns =
        read_densely(counter, clock, kStart_ns, 3000 * kNanosecondsPerMillisecond, read_duration_ns);
    expect_true_updates_inside(counter, clock, now_ns);
    EXPECT_EQ(clock.irregular_update_count(), 0u);
  }
}

TEST(UpdateTimeEstimator, CountsAMissedUpdateAsIrregularAndRelocks) {
  for (int round = 0; round < 50; ++round) {
    const std::uint64_t seed = 3000 + static_cast<std::uint64_t>(round);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    UpdatingCounter counter(seed);
    counter.phase_ns = static_cast<double>(counter.random_below(100 * kNanosecondsPerMillisecond));
    counter.is_update_missed = [](std::int64_t number) { return number % 20 == 10; };
    UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update);
    const std::int64_t now_ns = read_densely(counter, clock, kStart_ns, 4800 * kNanosecondsPerMillisecond,
                                             [] { return 2 * kNanosecondsPerMillisecond; });
    EXPECT_GE(clock.irregular_update_count(), 2u);
    expect_true_updates_inside(counter, clock, now_ns);
  }
}

TEST(UpdateTimeEstimator, FindsThePeriodOfAGaugeThatRepeatsItsValues) {
  for (int round = 0; round < 50; ++round) {
    const std::uint64_t seed = 4000 + static_cast<std::uint64_t>(round);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    UpdatingCounter counter(seed);
    counter.phase_ns = static_cast<double>(counter.random_below(100 * kNanosecondsPerMillisecond));
    counter.is_update_missed = [&](std::int64_t number) {
      return number % 3 == 0;
    };  // an update that repeats the value
    UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::inconclusive);
    const std::int64_t now_ns = read_densely(counter, clock, kStart_ns, 3000 * kNanosecondsPerMillisecond,
                                             [] { return kNanosecondsPerMillisecond / 100; });
    expect_true_updates_inside(counter, clock, now_ns);
    EXPECT_NEAR(clock.period_ns(), 100e6, 1e6);
  }
}

TEST(UpdateTimeEstimator, LocksOntoACardThatUpdatesEveryTwentyMilliseconds) {
  UpdatingCounter counter(5);
  counter.period_ns = 20e6;
  UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update);
  const std::int64_t now_ns = read_densely(counter, clock, kStart_ns, 500 * kNanosecondsPerMillisecond,
                                           [] { return kNanosecondsPerMillisecond / 100; });
  expect_true_updates_inside(counter, clock, now_ns);
  EXPECT_NEAR(clock.period_ns(), 20e6, 1e5);
}

TEST(UpdateTimeEstimator, FindsThePhaseByPairsOfReadsWithASuggestedPeriod) {
  UpdatingCounter counter(6);
  counter.phase_ns = 61e6;
  UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update);
  clock.suggest_period(100e6, 1e5);
  std::int64_t now_ns = kStart_ns;
  for (int pair = 0; pair < 20 && !clock.is_locked(); ++pair) {
    now_ns = counter.read(clock, now_ns + 1013 * kNanosecondsPerMillisecond, 3 * kNanosecondsPerMillisecond);
    now_ns = counter.read(clock, now_ns + 30 * kNanosecondsPerMillisecond, 3 * kNanosecondsPerMillisecond);
  }
  expect_true_updates_inside(counter, clock, now_ns);
}

TEST(UpdateTimeEstimator, FindsANewPeriodWhenTheDeviceChangesIt) {
  UpdatingCounter counter(7);
  UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update);
  std::int64_t now_ns = read_densely(counter, clock, kStart_ns, 1000 * kNanosecondsPerMillisecond,
                                     [] { return kNanosecondsPerMillisecond; });
  counter.period_ns = 61e6;
  now_ns = read_densely(counter, clock, now_ns, 2000 * kNanosecondsPerMillisecond,
                        [] { return kNanosecondsPerMillisecond; });
  EXPECT_GE(clock.irregular_update_count(), 3u);
  expect_true_updates_inside(counter, clock, now_ns);
}

TEST(UpdateTimeEstimator, EarlyLatchingNarrowsUpdates) {
  UpdatingCounter counter(41);
  UpdateTimeEstimator whole(UpdateTimeEstimator::EqualValueMeaning::no_update);
  UpdateTimeEstimator early(UpdateTimeEstimator::EqualValueMeaning::no_update, kNanosecondsPerMillisecond);
  std::int64_t now_ns = kStart_ns;
  while (now_ns < kStart_ns + 5000 * kNanosecondsPerMillisecond) {
    const std::int64_t read_duration_ns = 3 * kNanosecondsPerMillisecond;
    const std::uint64_t value = counter.value_at(now_ns + counter.random_below(kNanosecondsPerMillisecond));
    whole.observe(now_ns, now_ns + read_duration_ns, value);
    early.observe(now_ns, now_ns + read_duration_ns, value);
    now_ns += read_duration_ns + 1 * kNanosecondsPerMillisecond;
  }
  expect_true_updates_inside(counter, early, now_ns);
  EXPECT_LT(early.known_update_half_width_ns(), whole.known_update_half_width_ns());
  EXPECT_EQ(early.irregular_update_count(), 0u);
}

TEST(UpdateTimeEstimator, UsesTheWholeReadWhenEarlyLatchingIsWrong) {
  UpdatingCounter counter(43);
  UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update, kNanosecondsPerMillisecond / 2);
  std::int64_t now_ns = kStart_ns;
  while (now_ns < kStart_ns + 30'000 * kNanosecondsPerMillisecond)
    now_ns = counter.read(clock, now_ns, 5 * kNanosecondsPerMillisecond) + 1 * kNanosecondsPerMillisecond;
  EXPECT_GE(clock.irregular_update_count(), 3u);
  expect_true_updates_inside(counter, clock, now_ns);
}

TEST(UpdateTimeEstimator, ASuggestedPeriodLocksOntoTheLastChange) {
  UpdatingCounter counter(47);
  counter.phase_ns = 50e6;
  UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update);
  std::int64_t now_ns = kStart_ns;
  while (now_ns < kStart_ns + 70 * kNanosecondsPerMillisecond)
    now_ns = counter.read(clock, now_ns, 3 * kNanosecondsPerMillisecond) + 5 * kNanosecondsPerMillisecond;
  EXPECT_FALSE(clock.is_locked());
  clock.suggest_period(100e6, 2e5);
  expect_true_updates_inside(counter, clock, now_ns);
}

TEST(UpdateTimeEstimator, IgnoresASuggestedPeriodThatDoesNotFit) {
  UpdatingCounter counter(53);
  UpdateTimeEstimator clock(UpdateTimeEstimator::EqualValueMeaning::no_update);
  const std::int64_t now_ns = read_densely(counter, clock, kStart_ns, 2000 * kNanosecondsPerMillisecond,
                                           [] { return 3 * kNanosecondsPerMillisecond; });
  clock.suggest_period(120e6, 1e5);
  expect_true_updates_inside(counter, clock, now_ns);
  EXPECT_NEAR(clock.period_ns(), 100e6, 1e6);
}

}  // namespace
}  // namespace joulemap
