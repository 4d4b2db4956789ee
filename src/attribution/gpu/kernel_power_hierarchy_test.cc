// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/kernel_power_hierarchy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "attribution/gpu/kernel_priors.h"
#include "recording/kernel_power_library.h"

namespace joulemap::attribution {
namespace {

ObservedKernels make_kernel_observation(std::string name, double blocks = 5000, KernelKind kind = KernelKind::kernel) {
  return {{kind, std::move(name), 20}, blocks, 256, 1, 1000};
}

KernelPower library_entry(std::string name, double watts, double blocks = 5000) {
  return recording::make_measured_entry("H200", make_kernel_observation(std::move(name), blocks), watts, 0.03);
}

TEST(KernelPowerHierarchy, StemsAreNamesWithoutArgumentsAndNumbers) {
  EXPECT_EQ(
      kernel_name_stem(
          make_kernel_observation("void at::native::reduce_kernel<512, 1, at::Op<float> >(at::Op<float>)").kernel_key),
      "at::native::reduce_kernel");
  EXPECT_EQ(
      kernel_name_stem(make_kernel_observation("_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi").kernel_key),
      "at::native::vectorized_elementwise_kernel");
  EXPECT_EQ(kernel_name_stem(make_kernel_observation("sm90_xmma_gemm_f32f32_tilesize128x64x32").kernel_key),
            "sm_xmma_gemm_ff_tilesizexx");
  EXPECT_EQ(
      kernel_name_stem(make_kernel_observation("void at::native::(anonymous namespace)::pool<float>(int)").kernel_key),
      "at::native::pool");
}

TEST(KernelPowerHierarchy, FindsFamiliesByWordsOfTheName) {
  EXPECT_EQ(kernel_family(make_kernel_observation("nvjet_sm90_tst_320x128_64x3").kernel_key), "gemm");
  EXPECT_EQ(kernel_family(make_kernel_observation("sm80_xmma_fprop_implicit_gemm_f32").kernel_key), "convolution");
  EXPECT_EQ(kernel_family(
                make_kernel_observation("void at::native::vectorized_elementwise_kernel<4, reduce>(int)").kernel_key),
            "elementwise");
  EXPECT_EQ(kernel_family(make_kernel_observation("void cudnn::bn_bw_1C11_kernel_new<float>(float)").kernel_key),
            "normalization");
  EXPECT_EQ(kernel_family(make_kernel_observation("mine").kernel_key), "other");
  EXPECT_EQ(kernel_family(make_kernel_observation("DtoD", 1, KernelKind::copy).kernel_key), "copy");
}

TEST(KernelPowerHierarchy, AStemWithLittleSpreadIsMorePreciseThanAFamily) {
  std::vector<KernelPower> library;
  for (int i = 0; i < 6; ++i) {
    library.push_back(library_entry("gemm_" + std::string(1, static_cast<char>('a' + i)) + "<1>", 900 - 60 * i));
    for (int j = 0; j < 6; ++j) {
      library.push_back(library_entry("elementwise_x<" + std::to_string(6 * i + j) + ">", 500 + 3 * j));
    }
  }
  const KernelPowerHierarchy kinds(library);
  const KernelClassPrior elementwise_prior = kinds.predict_power(make_kernel_observation("elementwise_x<99>"));
  const KernelClassPrior other_gemm = kinds.predict_power(make_kernel_observation("gemm_z<1>"));
  const KernelClassPrior unknown_family_prior = kinds.predict_power(make_kernel_observation("mine"));
  EXPECT_NEAR(elementwise_prior.watts, 507, 25);
  EXPECT_LT(elementwise_prior.relative_sd, other_gemm.relative_sd);
  EXPECT_LT(other_gemm.relative_sd, unknown_family_prior.relative_sd);
  EXPECT_GT(other_gemm.watts, 600);
  EXPECT_TRUE(elementwise_prior.is_known);
}

TEST(KernelPowerHierarchy, FewBlocksLeaveMostOfTheGpuIdle) {
  const std::vector<KernelPower> library = {library_entry("add<1>", 600), library_entry("add<2>", 620),
                                            library_entry("mul<1>", 580)};
  const KernelPowerHierarchy kinds(library);
  EXPECT_LT(kinds.predict_power(make_kernel_observation("add<3>", 8)).watts, 200);
  EXPECT_GT(kinds.predict_power(make_kernel_observation("add<3>", 8000)).watts, 500);
}

// Families, stems and classes are drawn from the model. Leaves each class out in turn: the interval of its prior, from
// similar classes, has nominal coverage.
TEST(KernelPowerHierarchy, BorrowedPowersHaveTheStatedUncertainty) {
  int covered_count = 0;
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::normal_distribution<> normal;
    std::vector<KernelPower> library;
    for (const char* family : {"gemm", "pool", "softmax", "elementwise", "reduce"}) {
      const double family_log_power = std::log(500) + 0.25 * normal(random);
      for (char stem = 'a'; stem < 'e'; ++stem) {
        const double stem_log_power = family_log_power + 0.15 * normal(random);
        for (int i = 0; i < 4; ++i) {
          const std::string name = std::string(family) + "_" + stem + "<" + std::to_string(i) + ">";
          const double class_log_power = stem_log_power + 0.1 * normal(random);
          library.push_back(
              library_entry(name, std::exp(class_log_power + 0.07 * normal(random))));  // 7 %: spread of one finding
        }
      }
    }
    for (std::size_t i = 0; i < library.size(); ++i) {
      std::vector<KernelPower> library_without_class = library;
      library_without_class.erase(library_without_class.begin() + static_cast<std::ptrdiff_t>(i));
      const KernelClassPrior prior = KernelPowerHierarchy(library_without_class)
                                         .predict_power(make_kernel_observation(library[i].kernel_key.name));
      const double deviation = std::log(library[i].watts / prior.watts) / prior.relative_sd;
      if (std::abs(deviation) < 1.645) ++covered_count;
      ++count;
    }
  }
  EXPECT_GE(covered_count, count * 85 / 100);
  EXPECT_LE(covered_count, count * 98 / 100);
}

TEST(KernelPriors, PriorsFromARecordingEqualThoseOfTheLibrary) {
  const KernelPriors library =
      KernelPriors::make_from_library({library_entry("add<1>", 600), library_entry("gemm<1>", 900)});
  const std::vector<ObservedKernels> observed_kernels = {make_kernel_observation("add<1>"),
                                                         make_kernel_observation("add<2>")};
  const KernelPriors from_recording =
      KernelPriors::make_from_recording(library.find_kernel_powers("H200", observed_kernels));
  const std::vector<std::vector<ObservedKernels>> columns = {
      {observed_kernels[0]}, {observed_kernels[1]}, observed_kernels};
  const std::vector<KernelClassPrior> library_priors = library.find_column_priors("H200", columns);
  const std::vector<KernelClassPrior> recording_priors = from_recording.find_column_priors("H200", columns);
  ASSERT_EQ(library_priors.size(), 4U);  // three classes and idle
  ASSERT_EQ(recording_priors.size(), 4U);
  for (std::size_t i = 0; i < library_priors.size(); ++i) {
    EXPECT_NEAR(library_priors[i].watts, recording_priors[i].watts, 1e-9);
    EXPECT_NEAR(library_priors[i].relative_sd, recording_priors[i].relative_sd, 1e-9);
  }
  EXPECT_TRUE(library.find_kernel_powers("A100", observed_kernels).empty());
  EXPECT_TRUE(library.find_column_priors("A100", columns).empty());
}

}  // namespace
}  // namespace joulemap::attribution
