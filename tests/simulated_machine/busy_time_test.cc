// SPDX-License-Identifier: Apache-2.0
#include "busy_time.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"

namespace joulemap::simulated {
namespace {

constexpr double kUnlimitedCapacity_s = 1e9;

// A child process that spins until the test is over.
class BusyChild {
 public:
  BusyChild() : pid_(fork()) {
    if (pid_ == 0) {
      alarm(20);  // in case the test dies first
      while (true) process_cpu_ns();
    }
  }
  BusyChild(const BusyChild&) = delete;
  BusyChild& operator=(const BusyChild&) = delete;
  ~BusyChild() { end(); }

  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  double cpu_s() const {
    clockid_t clock = 0;
    EXPECT_EQ(clock_getcpuclockid(pid_, &clock), 0);
    return seconds(clock_ns(clock));
  }
  void run_for(double duration_s) const {
    const double target_cpu_s = cpu_s() + duration_s;
    while (cpu_s() < target_cpu_s) usleep(1000);
  }

 private:
  pid_t pid_;
};

std::optional<ProcessShare> find_process_share(const BusyTime& busy, pid_t pid) {
  const std::vector<ProcessShare> shares = busy.shares();
  const auto matching_share =
      std::find_if(shares.begin(), shares.end(), [pid](const auto& share) { return share.pid == pid; });
  return matching_share == shares.end() ? std::nullopt : std::optional(*matching_share);
}

TEST(BusyTime, AnExistingProcessCountsFromTheStartOnly) {
  const BusyChild child;
  child.run_for(0.2);
  Result<BusyTime> busy = BusyTime::start();
  ASSERT_TRUE(busy.has_value());
  child.run_for(0.05);
  busy->advance(kUnlimitedCapacity_s);
  const std::optional<ProcessShare> share = find_process_share(*busy, child.pid());
  ASSERT_TRUE(share.has_value());
  EXPECT_GE(share->cpu_s, 0.04);
  EXPECT_LT(share->cpu_s, child.cpu_s() - 0.19);
}

TEST(BusyTime, ANewProcessCountsFromItsBirth) {
  Result<BusyTime> busy = BusyTime::start();
  ASSERT_TRUE(busy.has_value());
  const BusyChild child;
  child.run_for(0.1);
  busy->refresh_processes();
  busy->advance(kUnlimitedCapacity_s);
  const std::optional<ProcessShare> share = find_process_share(*busy, child.pid());
  ASSERT_TRUE(share.has_value());
  EXPECT_GE(share->cpu_s, 0.1);
}

TEST(BusyTime, CarriesExcessCpuTimeToTheNextTick) {
  Result<BusyTime> busy = BusyTime::start();
  ASSERT_TRUE(busy.has_value());
  BusyChild child;
  child.run_for(0.1);
  EXPECT_NEAR(busy->advance(0.01), 0.01, 1e-9);
  const pid_t pid = child.pid();
  child.end();
  EXPECT_NEAR(busy->advance(0.02), 0.02, 1e-9);
  busy->advance(kUnlimitedCapacity_s);
  busy->attribute_energy(0);
  ASSERT_TRUE(find_process_share(*busy, pid).has_value());
  // The CPU clock of a running process is up to one kernel tick old, and after its end the rest is not readable.
  EXPECT_GE(find_process_share(*busy, pid)->cpu_s, 0.09);
}

TEST(BusyTime, SplitsEnergyInProportionToCpuTime) {
  Result<BusyTime> busy = BusyTime::start();
  ASSERT_TRUE(busy.has_value());
  const BusyChild child;
  child.run_for(0.05);
  const double total_s = busy->advance(kUnlimitedCapacity_s);
  busy->attribute_energy(10);
  const std::optional<ProcessShare> share = find_process_share(*busy, child.pid());
  ASSERT_TRUE(share.has_value());
  EXPECT_NEAR(share->joules_package, 10 * share->cpu_s / total_s, 1e-9);
}

TEST(BusyTime, DoesNotCountTheCaller) {
  Result<BusyTime> busy = BusyTime::start();
  ASSERT_TRUE(busy.has_value());
  const std::int64_t target_cpu_ns = process_cpu_ns() + 20 * kNanosecondsPerMillisecond;
  while (process_cpu_ns() < target_cpu_ns) {
  }
  busy->advance(kUnlimitedCapacity_s);
  EXPECT_FALSE(find_process_share(*busy, getpid()).has_value());
}

}  // namespace
}  // namespace joulemap::simulated
