// SPDX-License-Identifier: Apache-2.0
#include "scopes/host_lateness_tracker.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace joulemap {
namespace {

std::map<std::uint32_t, std::int64_t> wait_charges_by_scope(HostLatenessTracker& scopes) {
  std::map<std::uint32_t, std::int64_t> wait_ns_by_scope;
  for (const HostLatenessTracker::WaitCharge& charge : scopes.take_wait_charges())
    wait_ns_by_scope[charge.scope] += charge.wait_ns;
  return wait_ns_by_scope;
}

using ChargesByScope = std::map<std::uint32_t, std::int64_t>;

TEST(HostLatenessTracker, DividesAWaitByTheTimeForWhichScopesAreLate) {
  HostLatenessTracker scopes;
  scopes.add_host_time(1, 3'000);
  scopes.add_host_time(2, 2'000);
  scopes.add_kernel(2, 1'000);
  EXPECT_TRUE(scopes.add_wait(400));
  EXPECT_EQ(wait_charges_by_scope(scopes), (ChargesByScope{{1, 300}, {2, 100}}));
}

TEST(HostLatenessTracker, ChargesNothingToAScopeThatGivesTheGpuMoreToDoThanItTakes) {
  HostLatenessTracker scopes;
  scopes.add_host_time(1, 3'000);
  scopes.add_host_time(2, 2'000);
  scopes.add_kernel(2, 9'000);
  EXPECT_TRUE(scopes.add_wait(400));
  EXPECT_EQ(wait_charges_by_scope(scopes), (ChargesByScope{{1, 400}}));
}

TEST(HostLatenessTracker, ChargesNothingToWhatHappensAfterAWait) {
  HostLatenessTracker scopes;
  scopes.add_host_time(1, 1'000);
  EXPECT_TRUE(scopes.add_wait(500));
  scopes.add_host_time(2, 50'000);
  EXPECT_EQ(wait_charges_by_scope(scopes), (ChargesByScope{{1, 500}}));
}

TEST(HostLatenessTracker, ChargesEqualScopesEquallyWhenEachMakesTheGpuWait) {
  HostLatenessTracker scopes;
  for (std::uint32_t layer = 1; layer <= 4; ++layer) {
    scopes.add_host_time(layer, 1'000);
    scopes.add_kernel(layer, 200);
    EXPECT_TRUE(scopes.add_wait(800));
  }
  scopes.reset_period();
  EXPECT_EQ(wait_charges_by_scope(scopes), (ChargesByScope{{1, 800}, {2, 800}, {3, 800}, {4, 800}}));
}

TEST(HostLatenessTracker, ChargesEqualScopesEquallyWhenALargeKernelHidesTheFirst) {
  HostLatenessTracker scopes;
  scopes.add_host_time(9, 100);
  scopes.add_kernel(9, 2'100);  // the GPU is busy while the host is in the first two layers
  for (std::uint32_t layer = 1; layer <= 4; ++layer) {
    scopes.add_host_time(layer, 1'000);
    const bool is_idle = layer > 2;
    EXPECT_TRUE(!is_idle || scopes.add_wait(1'000));
  }
  scopes.reset_period();
  EXPECT_EQ(wait_charges_by_scope(scopes), (ChargesByScope{{1, 500}, {2, 500}, {3, 500}, {4, 500}}));
}

TEST(HostLatenessTracker, LatenessOfAnEarlierPeriodCountsLess) {
  HostLatenessTracker scopes;
  scopes.add_host_time(1, 1'000);
  scopes.end_period();
  scopes.add_host_time(2, 1'000);
  EXPECT_TRUE(scopes.add_wait(600));
  EXPECT_EQ(wait_charges_by_scope(scopes), (ChargesByScope{{1, 200}, {2, 400}}));
}

TEST(HostLatenessTracker, RefusesAWaitWhileNoScopeIsLate) {
  HostLatenessTracker scopes;
  EXPECT_FALSE(scopes.add_wait(100));
  scopes.add_kernel(1, 10);
  EXPECT_FALSE(scopes.add_wait(100));
  EXPECT_TRUE(scopes.take_wait_charges().empty());
}

TEST(HostLatenessTracker, BeginsAnewWithoutForgettingWhatWasCharged) {
  HostLatenessTracker scopes;
  scopes.add_host_time(1, 1'000);
  EXPECT_TRUE(scopes.add_wait(500));
  scopes.reset_period();
  EXPECT_FALSE(scopes.add_wait(100)) << "no scope is late";
  scopes.add_host_time(2, 1'000);
  EXPECT_FALSE(scopes.add_wait(2'000)) << "it is not late for so long";
  EXPECT_TRUE(scopes.add_wait(700));
  EXPECT_EQ(wait_charges_by_scope(scopes), (ChargesByScope{{1, 500}, {2, 700}}));
}

TEST(HostLatenessTracker, ChargesAllWaitsHoweverTheyAreDivided) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto random_below = [&](std::int64_t end) { return static_cast<std::int64_t>(random()) % end; };
  HostLatenessTracker scopes;
  std::int64_t waited_ns = 0;
  std::int64_t charged_ns = 0;
  for (int i = 0; i < 20'000; ++i) {
    scopes.add_host_time(static_cast<std::uint32_t>(random_below(40)), random_below(20'000));
    if (random_below(2) == 0) scopes.add_kernel(static_cast<std::uint32_t>(random_below(40)), random_below(30'000));
    const std::int64_t wait_ns = random_below(10'000);
    if (scopes.add_wait(wait_ns)) waited_ns += wait_ns;
    if (random_below(200) == 0) scopes.end_period();
    if (random_below(1000) == 0) scopes.reset_period();
    if (random_below(300) != 0) continue;
    for (const HostLatenessTracker::WaitCharge& charge : scopes.take_wait_charges()) charged_ns += charge.wait_ns;
  }
  for (const HostLatenessTracker::WaitCharge& charge : scopes.take_wait_charges()) charged_ns += charge.wait_ns;
  EXPECT_NEAR(static_cast<double>(charged_ns), static_cast<double>(waited_ns), 100);  // fractions of a ns stay
}

}  // namespace
}  // namespace joulemap
