// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml/nvml_read_schedule.h"
#include "base/clock.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace joulemap::sensors::nvml {
namespace {

constexpr std::int64_t kStart_ns = 5'000'000 * kNanosecondsPerMillisecond;

// A GPU in simulated time: a counter and a power that update with the same period, some time apart, and reads of a
// given duration. Nothing sleeps.
class SimulatedGpu {
 public:
  explicit SimulatedGpu(std::uint64_t seed) : random_(seed) {}

  double period_ns = 100e6 * (1 - 3e-6);
  double counter_phase_ns = 41e6;
  double power_phase_ns = 61e6;
  std::int64_t counter_read_ns = 3 * kNanosecondsPerMillisecond;
  bool has_power = true;

  CounterReadSchedule counter;
  PowerReadSchedule power;
  std::int64_t now_ns = kStart_ns;
  std::vector<std::int64_t> counter_reads_ns;  // begin of each read
  std::int64_t counter_cpu_ns = 0;
  std::int64_t power_read_count = 0;

  std::int64_t nearest_counter_update_ns(std::int64_t time_ns) const {
    const double updates = std::round((static_cast<double>(time_ns - kStart_ns) - counter_phase_ns) / period_ns);
    return kStart_ns + static_cast<std::int64_t>(counter_phase_ns + updates * period_ns);
  }

  // Schedules reads as a sampler does.
  void run(std::int64_t for_ns, SamplingMode mode, std::optional<std::int64_t> requested_ns = {}) {
    const std::int64_t end_ns = now_ns + for_ns;
    while (now_ns < end_ns) {
      const std::int64_t counter_due_ns = counter.next_read_ns(mode, requested_ns);
      const std::int64_t power_due_ns = has_power ? power.next_read_ns(mode, requested_ns) : INT64_MAX;
      now_ns = std::max(now_ns, std::min(counter_due_ns, power_due_ns)) + 50'000;  // a thread wakes a little late
      if (power_due_ns <= now_ns) read_power();
      if (counter_due_ns <= now_ns) read_counter(mode);
    }
  }

 private:
  std::uint64_t updates_until(std::int64_t time_ns, double phase_ns) const {
    return static_cast<std::uint64_t>(1000 +
                                      std::floor((static_cast<double>(time_ns - kStart_ns) - phase_ns) / period_ns));
  }
  void read_power() {
    power.add_read(now_ns, now_ns + 5'000, updates_until(now_ns, power_phase_ns));
    counter.suggest_period(power.update_clock());
    now_ns += 5'000;
    ++power_read_count;
  }
  void read_counter(SamplingMode mode) {
    std::int64_t read_duration_ns = counter_read_ns;
    if (read_duration_ns > kNanosecondsPerMillisecond && random_() % 100 == 0)
      read_duration_ns += static_cast<std::int64_t>(random_() % 20) * kNanosecondsPerMillisecond;
    const std::int64_t latched_ns =
        now_ns + static_cast<std::int64_t>(
                     random_() % static_cast<std::uint64_t>(std::min(read_duration_ns, kNanosecondsPerMillisecond)));
    counter.add_read(now_ns, now_ns + read_duration_ns, read_duration_ns, updates_until(latched_ns, counter_phase_ns),
                     mode);
    counter_reads_ns.push_back(now_ns);
    counter_cpu_ns += read_duration_ns;
    now_ns += read_duration_ns;
  }

  std::mt19937_64 random_;
};

void expect_true_update_inside(const SimulatedGpu& gpu) {
  ASSERT_TRUE(gpu.counter.update_clock().is_locked());
  const UpdateInterval update = gpu.counter.update_clock().next_update_after(gpu.now_ns);
  const std::int64_t true_update_ns = gpu.nearest_counter_update_ns(update.midpoint_ns());
  EXPECT_GE(true_update_ns, update.earliest_ns);
  EXPECT_LE(true_update_ns, update.latest_ns);
}

TEST(NvmlReadSchedule, LocatesUpdatesOfASlowCounterWithLittleCpuTime) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimulatedGpu gpu(seed);
    gpu.counter_phase_ns = static_cast<double>(seed * 7 % 100) * 1e6 + 3e5;
    gpu.run(120 * kNanosecondsPerSecond, SamplingMode::relaxed);
    EXPECT_LT(static_cast<double>(gpu.counter_cpu_ns), 0.005 * 120e9);
    EXPECT_GT(gpu.counter_reads_ns.size(), 80u);
    expect_true_update_inside(gpu);
    EXPECT_LT(gpu.counter.update_clock().known_update_half_width_ns(), 2 * kNanosecondsPerMillisecond);
  }
}

TEST(NvmlReadSchedule, ReadsTheCounterWhereItIsCheapOnceUpdatesAreLocated) {
  SimulatedGpu gpu(7);
  gpu.run(60 * kNanosecondsPerSecond, SamplingMode::relaxed);
  gpu.counter_reads_ns.clear();
  gpu.run(60 * kNanosecondsPerSecond, SamplingMode::relaxed);
  std::size_t cheap_phase_read_count = 0;
  for (const std::int64_t read_ns : gpu.counter_reads_ns) {
    const std::int64_t since_ns = read_ns - gpu.nearest_counter_update_ns(read_ns);
    EXPECT_FALSE(since_ns > 3 * kNanosecondsPerMillisecond && since_ns < 25 * kNanosecondsPerMillisecond)
        << "there it takes longest";
    if (since_ns >= 25 * kNanosecondsPerMillisecond) ++cheap_phase_read_count;
  }
  EXPECT_GT(cheap_phase_read_count * 10, gpu.counter_reads_ns.size() * 4);
}

TEST(NvmlReadSchedule, ReadsACheapCounterOncePerUpdate) {
  SimulatedGpu gpu(3);
  gpu.counter_read_ns = 20'000;
  gpu.run(5 * kNanosecondsPerSecond, SamplingMode::relaxed);
  gpu.counter_reads_ns.clear();
  gpu.run(10 * kNanosecondsPerSecond, SamplingMode::relaxed);
  EXPECT_GE(gpu.counter_reads_ns.size(), 98u);
  EXPECT_LE(gpu.counter_reads_ns.size(), 130u);
  expect_true_update_inside(gpu);
}

// The mode every_update, which is used while modules are replayed.
TEST(NvmlReadSchedule, ReadsASlowCounterAtEachUpdateOnRequestAndWhereItIsCheap) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimulatedGpu gpu(seed);
    gpu.run(kNanosecondsPerSecond, SamplingMode::near_edge);
    gpu.run(20 * kNanosecondsPerSecond, SamplingMode::relaxed);
    gpu.counter_reads_ns.clear();
    gpu.run(10 * kNanosecondsPerSecond, SamplingMode::every_update);
    EXPECT_GE(gpu.counter_reads_ns.size(), 95u);
    EXPECT_LE(gpu.counter_reads_ns.size(), 205u);
    std::set<std::int64_t> updates;
    for (const std::int64_t read_ns : gpu.counter_reads_ns) {
      updates.insert(gpu.nearest_counter_update_ns(read_ns - static_cast<std::int64_t>(0.3 * gpu.period_ns)));
    }
    EXPECT_GE(updates.size(), 95u);
  }
}

TEST(NvmlReadSchedule, LocksWithinHalfASecondInNearEdgeMode) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimulatedGpu gpu(seed);
    gpu.counter_phase_ns = static_cast<double>(seed * 13 % 100) * 1e6;
    gpu.run(500 * kNanosecondsPerMillisecond, SamplingMode::near_edge);
    EXPECT_TRUE(gpu.counter.update_clock().is_locked());
    gpu.run(3 * kNanosecondsPerSecond, SamplingMode::near_edge);
    expect_true_update_inside(gpu);
    EXPECT_LT(gpu.counter.update_clock().known_update_half_width_ns(), 5 * kNanosecondsPerMillisecond / 2);
  }
}

TEST(NvmlReadSchedule, ReadsBeforeAndAfterEveryUpdateInNearEdgeMode) {
  SimulatedGpu gpu(11);
  gpu.run(2 * kNanosecondsPerSecond, SamplingMode::near_edge);
  gpu.counter_reads_ns.clear();
  const std::int64_t from_ns = gpu.now_ns;
  gpu.run(2 * kNanosecondsPerSecond, SamplingMode::near_edge);
  EXPECT_LT(gpu.counter_reads_ns.size(), 75u);  // update times are known: reads are no longer dense
  for (std::int64_t update_ns = gpu.nearest_counter_update_ns(from_ns + 200 * kNanosecondsPerMillisecond);
       update_ns < gpu.now_ns - 200 * kNanosecondsPerMillisecond;
       update_ns += static_cast<std::int64_t>(gpu.period_ns)) {
    bool has_read_before = false;
    bool has_read_after = false;
    for (const std::int64_t read_ns : gpu.counter_reads_ns) {
      has_read_before =
          has_read_before || (read_ns <= update_ns && read_ns > update_ns - 30 * kNanosecondsPerMillisecond);
      has_read_after =
          has_read_after || (read_ns >= update_ns && read_ns < update_ns + 30 * kNanosecondsPerMillisecond);
    }
    EXPECT_TRUE(has_read_before && has_read_after) << (update_ns - from_ns) / kNanosecondsPerMillisecond << " ms";
  }
}

TEST(NvmlReadSchedule, UserPeriodOverridesTheCpuShareButNotTheUpdatePeriod) {
  SimulatedGpu gpu(5);
  gpu.run(30 * kNanosecondsPerSecond, SamplingMode::relaxed);
  gpu.counter_reads_ns.clear();
  gpu.run(10 * kNanosecondsPerSecond, SamplingMode::relaxed, 200 * kNanosecondsPerMillisecond);
  EXPECT_GT(gpu.counter_reads_ns.size(), 35u);
  EXPECT_LT(gpu.counter_reads_ns.size(), 80u);
  gpu.counter_reads_ns.clear();
  gpu.run(10 * kNanosecondsPerSecond, SamplingMode::relaxed, kNanosecondsPerMillisecond);
  EXPECT_LE(gpu.counter_reads_ns.size(), 200u);  // locating an update takes a pair of reads
}

TEST(NvmlReadSchedule, PollsPowerSeveralTimesPerUpdateAndLocks) {
  SimulatedGpu gpu(9);
  gpu.run(5 * kNanosecondsPerSecond, SamplingMode::relaxed);
  gpu.power_read_count = 0;
  gpu.run(10 * kNanosecondsPerSecond, SamplingMode::relaxed);
  EXPECT_TRUE(gpu.power.update_clock().is_locked());
  EXPECT_LT(gpu.power.update_clock().known_update_half_width_ns(), 3 * kNanosecondsPerMillisecond / 2);
  EXPECT_GT(gpu.power_read_count, 300);
  EXPECT_LT(gpu.power_read_count, 1010);
}

TEST(NvmlReadSchedule, WorksWithoutAPowerField) {
  SimulatedGpu gpu(13);
  gpu.has_power = false;
  gpu.run(60 * kNanosecondsPerSecond, SamplingMode::relaxed);
  EXPECT_LT(static_cast<double>(gpu.counter_cpu_ns), 0.0075 * 60e9);
  EXPECT_GT(gpu.counter_reads_ns.size(), 40u);
}

TEST(NvmlReadSchedule, RetriesOnceASecondAfterAFailure) {
  CounterReadSchedule schedule;
  schedule.add_failed_read(kStart_ns);
  EXPECT_EQ(schedule.next_read_ns(SamplingMode::near_edge, {}), kStart_ns + kNanosecondsPerSecond);
  PowerReadSchedule power;
  power.add_failed_read(kStart_ns);
  EXPECT_EQ(power.next_read_ns(SamplingMode::relaxed, 10 * kNanosecondsPerMillisecond),
            kStart_ns + kNanosecondsPerSecond);
}

}  // namespace
}  // namespace joulemap::sensors::nvml
