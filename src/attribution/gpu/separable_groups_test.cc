// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/separable_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace joulemap::attribution {
namespace {

// Stand-ins for the times of the unknowns, which are only used as weights.
std::vector<double> unknown_time_weights(const statistics::NormalEquations& sums) {
  std::vector<double> times;
  for (std::size_t i = 0; i < sums.size(); ++i) times.push_back(std::sqrt(sums.gram(i, i)));
  return times;
}

TEST(SeparableGroups, ClassesThatAlwaysRunTogetherFormOneGroup) {
  constexpr std::uint64_t kSeed = 8;
  std::mt19937_64 random(kSeed);
  statistics::NormalEquations sums(4);
  for (int i = 0; i < 500; ++i) {
    const double paired_time_s = static_cast<double>(random() % 100) / 1000;
    const double independent_time_s = static_cast<double>(random() % 100) / 1000;
    const double idle_time_s = static_cast<double>(random() % 100) / 1000;
    sums.add_observation(std::vector<double>{paired_time_s, independent_time_s, 2 * paired_time_s, idle_time_s}, 10);
  }
  const SeparableGroups groups = find_separable_groups(sums, 1e-4, unknown_time_weights(sums));
  EXPECT_EQ(groups.group_by_unknown, (std::vector<std::size_t>{0, 1, 0, 2})) << "seed " << kSeed;
  EXPECT_EQ(groups.group_count, 3u);
  EXPECT_LT(groups.identified_fractions[0], kMinIdentifiedFraction);
  for (const double share : groups.data_fractions) EXPECT_GT(share, kMinIdentifiedFraction);
}

TEST(SeparableGroups, EqualStepsAreOneGroup) {
  statistics::NormalEquations sums(6);
  for (int i = 0; i < 500; ++i) sums.add_observation(std::vector<double>{0.01, 0.02, 0.03, 0.01, 0.02, 0.01}, 50);
  const SeparableGroups groups = find_separable_groups(sums, 1e-4, unknown_time_weights(sums));
  EXPECT_EQ(groups.group_count, 1u);
}

// The power of a class that uses nearly all of the energy is known well; its difference from the other classes is not.
TEST(SeparableGroups, ALargeClassOfASteadyLoopIsNotSeparable) {
  statistics::NormalEquations sums(4);
  for (int i = 0; i < 500; ++i) sums.add_observation(std::vector<double>{0.08, 0.01, 0.01, 0}, 50);
  for (int i = 0; i < 500; ++i) sums.add_observation(std::vector<double>{0, 0, 0, 0.1}, 10);
  const SeparableGroups groups = find_separable_groups(sums, 1e-4, unknown_time_weights(sums));
  for (std::size_t k = 0; k < 3; ++k) EXPECT_LT(groups.identified_fractions[k], 0.1) << k;
  EXPECT_GT(groups.identified_fractions[3], kMinIdentifiedFraction);
}

TEST(SeparableGroups, WithoutDataThereAreNoGroups) {
  const SeparableGroups groups = find_separable_groups(statistics::NormalEquations(2), 1, std::vector<double>{1, 1});
  for (const double share : groups.data_fractions) EXPECT_NEAR(share, 0, 1e-12);
}

}  // namespace
}  // namespace joulemap::attribution
