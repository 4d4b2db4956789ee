// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/slurm.h"

#include <gtest/gtest.h>

#include <random>

namespace joulemap::experiment {
namespace {

TEST(SlurmArrays, EveryBlockIsInOneArrayAndNoIndexReachesTheLimit) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::size_t> blocks;
    for (std::size_t block = 0; block < 300; ++block) {
      if (random() % 3 != 0) blocks.push_back(block);
    }
    const std::size_t max_array_size = 1 + random() % 100;
    std::vector<std::size_t> covered_blocks;
    for (const SlurmBlockArray& array : split_into_arrays(blocks, max_array_size)) {
      for (const std::size_t index : array.block_indices) {
        ASSERT_LT(index, max_array_size);
        covered_blocks.push_back(array.first_block + index);
      }
    }
    ASSERT_EQ(covered_blocks, blocks);
  }
}

TEST(SlurmArrays, NeighboursAreWrittenAsRanges) {
  EXPECT_EQ(slurm_array_text(std::vector<std::size_t>{0, 1, 2, 4, 7, 8}), "0-2,4,7-8");
  EXPECT_EQ(slurm_array_text(std::vector<std::size_t>{5}), "5");
}

}  // namespace
}  // namespace joulemap::experiment
