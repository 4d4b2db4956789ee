// SPDX-License-Identifier: Apache-2.0
#include "predict/model/parallel_for.h"

#include <gtest/gtest.h>

#include <vector>

namespace joulemap::predict {
namespace {

TEST(ParallelFor, VisitsEveryIndexOnce) {
  for (const std::size_t count : {0, 1, 2, 3, 7, 1000}) {
    std::vector<int> done(count);
    parallel_for(count, [&done](std::size_t index) { ++done[index]; });
    EXPECT_EQ(done, std::vector<int>(count, 1)) << count;
  }
}

}  // namespace
}  // namespace joulemap::predict
