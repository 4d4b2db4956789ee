// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/usual_kernel_powers.h"

#include <gtest/gtest.h>

namespace joulemap::attribution {
namespace {

ObservedKernels kernels(std::string name, double microseconds, double time_s = 1, double blocks = 1000) {
  ObservedKernels observed_kernels;
  observed_kernels.kernel_key.kind = KernelKind::kernel;
  observed_kernels.kernel_key.name = std::move(name);
  observed_kernels.blocks = blocks;
  observed_kernels.count = static_cast<std::uint64_t>(1e6 * time_s / microseconds);
  observed_kernels.time_s = 1e-6 * microseconds * static_cast<double>(observed_kernels.count);
  return observed_kernels;
}

TEST(UsualKernelPowers, AreLowForShortKernelsAndGrowWithDuration) {
  for (const char* name : {"vectorized_elementwise_kernel", "nvjet_tst_128x256", "cudnn_conv_fprop", "unheard_of"}) {
    EXPECT_LT(default_power_over_idle_ratio(kernels(name, 1)), 0.5) << name;
    double previous_ratio = 0;
    for (const double microseconds : {1.0, 3.0, 10.0, 30.0, 100.0, 1000.0}) {
      const double current_ratio = default_power_over_idle_ratio(kernels(name, microseconds));
      EXPECT_GT(current_ratio, previous_ratio) << name << " " << microseconds;
      previous_ratio = current_ratio;
    }
    EXPECT_GT(previous_ratio, 3) << name;
  }
}

TEST(UsualKernelPowers, AreLowForKernelsThatFillFewMultiprocessorsAndForCopiesFromTheHost) {
  EXPECT_LT(default_power_over_idle_ratio(kernels("reduce_kernel", 100, 1, 4)),
            0.3 * default_power_over_idle_ratio(kernels("reduce_kernel", 100)));
  ObservedKernels copy = kernels("HtoD", 100);
  copy.kernel_key.kind = KernelKind::copy;
  EXPECT_LT(default_power_over_idle_ratio(copy), 0.1);
}

TEST(UsualKernelPowers, AreScaledToTheMeanPowerOfTheRecording) {
  const std::vector<std::vector<ObservedKernels>> columns = {
      {kernels("nvjet_tst_128x256", 200, 0.5)}, {kernels("vectorized_elementwise_kernel", 3, 1.5)}, {}};
  const std::vector<KernelClassPrior> priors = make_default_priors(columns, {128, 8}, 400);
  ASSERT_EQ(priors.size(), 4U);
  EXPECT_NEAR((0.5 * priors[0].watts + 1.5 * priors[1].watts) / 2, 400, 0.5);
  EXPECT_GT(priors[0].watts, 2 * priors[1].watts);
  EXPECT_NEAR(priors[2].watts, 400, 0.5);
  EXPECT_DOUBLE_EQ(priors[3].watts, 128);
}

TEST(UsualKernelPowers, AreUnknownWithoutKernels) {
  EXPECT_TRUE(make_default_priors(std::vector<std::vector<ObservedKernels>>{{}}, {128, 8}, 400).empty());
}

}  // namespace
}  // namespace joulemap::attribution
