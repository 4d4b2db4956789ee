// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/lost_kernels.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace joulemap::attribution {
namespace {

TEST(LostKernels, IgnoresInvalidMarksAndProcessesWithoutAGpu) {
  ProcessActivity names;
  EXPECT_TRUE(lost_kernel_activity({5, MarkKind::kernels_lost, 10, 0, {}}, names).empty());
  names.kernel_queues[0] = {0, "GPU-1", 0, 1, 7};
  EXPECT_FALSE(lost_kernel_activity({5, MarkKind::kernels_lost, 10, 0, {}}, names).empty());
  EXPECT_TRUE(lost_kernel_activity({5, MarkKind::kernels_lost, 0, 0, {}}, names).empty());
  EXPECT_TRUE(lost_kernel_activity({5, MarkKind::kernels_lost, UINT64_MAX, 0, {}}, names).empty());
  EXPECT_TRUE(lost_kernel_activity({INT64_MAX - 5, MarkKind::kernels_lost, 10, 0, {}}, names).empty());
}

}  // namespace
}  // namespace joulemap::attribution
