// SPDX-License-Identifier: Apache-2.0
#include "predict/model/residual_kriging.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace joulemap::predict {
namespace {

Operation convolution(std::int64_t batch, std::int64_t size, std::int64_t kernel = 3) {
  Operation operation;
  operation.kind = Kind::convolution;
  operation.parameters = {{"batch", batch}, {"channels", 64},   {"out", 64},         {"height", size},
                          {"width", size},  {"kernel", kernel}, {"stride", 1},       {"padding", 1},
                          {"dilation", 1},  {"groups", 1},      {"channels_last", 0}};
  return operation;
}

void add(ResidualKriging& kriging, const Operation& operation, double time, double power = 0) {
  kriging.add(operation, false, make_residual_sample(operation, time, power));
}

TEST(ResidualKriging, ReproducesMeasuredResiduals) {
  ResidualKriging kriging;
  add(kriging, convolution(16, 56), 0.5, -0.2);
  const InterpolatedResidual interpolated = kriging.interpolate(convolution(16, 56), false);
  EXPECT_NEAR(interpolated.time_residual, 0.5, 0.02);
  EXPECT_NEAR(interpolated.power_residual, -0.2, 0.01);
  EXPECT_LT(interpolated.kriging_variance, 0.04);
}

TEST(ResidualKriging, InterpolatesResidualsBetweenSizes) {
  ResidualKriging kriging;
  add(kriging, convolution(16, 56), 0.2);
  add(kriging, convolution(64, 56), 0.6);
  const InterpolatedResidual interpolated = kriging.interpolate(convolution(32, 56), false);
  EXPECT_GT(interpolated.time_residual, 0.3);
  EXPECT_LT(interpolated.time_residual, 0.5);
  EXPECT_GT(interpolated.kriging_variance, kriging.interpolate(convolution(16, 56), false).kriging_variance);
}

TEST(ResidualKriging, CorrectionShrinksWithDistance) {
  ResidualKriging kriging;
  add(kriging, convolution(16, 56), 0.5);
  const InterpolatedResidual near_residual = kriging.interpolate(convolution(32, 56), false);
  const InterpolatedResidual far_residual = kriging.interpolate(convolution(4096, 56), false);
  EXPECT_GT(near_residual.time_residual, far_residual.time_residual);
  EXPECT_LT(near_residual.kriging_variance, far_residual.kriging_variance);
  EXPECT_LE(far_residual.kriging_variance, 1);
}

TEST(ResidualKriging, IgnoresOtherKernelTypesAndCacheStates) {
  ResidualKriging kriging;
  add(kriging, convolution(16, 56), 0.5);
  Operation half_precision_convolution = convolution(16, 56);
  half_precision_convolution.dtype = Dtype::fp16;
  for (const InterpolatedResidual& interpolated :
       {kriging.interpolate(convolution(16, 56, 5), false), kriging.interpolate(half_precision_convolution, false),
        kriging.interpolate(convolution(16, 56), true),
        ResidualKriging().interpolate(half_precision_convolution, false)}) {
    EXPECT_EQ(interpolated.time_residual, 0);
    EXPECT_EQ(interpolated.kriging_variance, 1);
  }
}

TEST(ResidualKriging, SupportsLeaveOneOutPrediction) {
  ResidualKriging kriging;
  add(kriging, convolution(16, 56), 0.5);
  add(kriging, convolution(64, 56), -0.5);
  const ResidualSample excluded_sample = make_residual_sample(convolution(16, 56), 0.5, 0);
  EXPECT_LT(kriging.interpolate(convolution(16, 56), false, &excluded_sample).time_residual, 0);
}

TEST(ResidualKriging, KrigingRoundTripsThroughText) {
  ResidualKriging kriging;
  for (const std::int64_t batch : {1, 7, 64})
    add(kriging, convolution(batch, 56), 0.01 * static_cast<double>(batch), -0.3);
  add(kriging, convolution(16, 28, 5), -1.25, 0.4);
  const Result<ResidualKriging> parsed_kriging = read_kriging(kriging_text(kriging));
  ASSERT_TRUE(parsed_kriging);
  EXPECT_EQ(parsed_kriging->samples_by_group, kriging.samples_by_group);
  EXPECT_TRUE(read_kriging("")->samples_by_group.empty());
}

TEST(ResidualKriging, ClampsSizesAndResidualsToTheRangeOfTheText) {
  const ResidualSample smallest_sample = make_residual_sample(convolution(1, 1), -7, -HUGE_VAL);
  EXPECT_EQ(smallest_sample.time_residual, -2047);
  EXPECT_EQ(smallest_sample.power_residual, -2047);
  EXPECT_EQ(smallest_sample.log_sizes[0], 0);
  const std::int64_t max_size = std::numeric_limits<std::int64_t>::max();
  const Operation large_convolution = convolution(max_size, max_size);
  const ResidualSample largest_sample = make_residual_sample(large_convolution, 7, 2.0469);
  EXPECT_EQ(largest_sample.time_residual, 2047);
  EXPECT_EQ(largest_sample.power_residual, 2047);
  EXPECT_EQ(largest_sample.log_sizes[0], 4095);
  ResidualKriging kriging;
  kriging.add(large_convolution, false, smallest_sample);
  kriging.add(large_convolution, true, largest_sample);
  const Result<ResidualKriging> parsed_kriging = read_kriging(kriging_text(kriging));
  ASSERT_TRUE(parsed_kriging);
  EXPECT_EQ(parsed_kriging->samples_by_group, kriging.samples_by_group);
}

TEST(ResidualKriging, ASampleTakesThirteenCharactersAndAGroupFifteen) {
  ResidualKriging kriging;
  kriging.samples_by_group[0x0123456789abcdef] = {{{0, 1, 64, 4095}, 2, 0, -2047}};
  EXPECT_EQ(kriging_text(kriging), "AEjRWeJq83vAAABAAABBA__CgAAB");
  kriging.samples_by_group.begin()->second.resize(100);
  EXPECT_EQ(kriging_text(kriging).size(), 15U + 100 * 13);
}

TEST(ResidualKriging, InvalidTextIsAnError) {
  const std::string group = "AEjRWeJq83v";
  const std::string sample = "AAABBA__CgAAB";
  ASSERT_TRUE(read_kriging(group + "AAAB" + sample));
  ASSERT_TRUE(read_kriging(group + "AAAA"));
  const std::string group_with_one_sample = group + "AAAB";
  for (const std::string& text : {
           "x" + group_with_one_sample + sample,          // longer
           group_with_one_sample + sample + "A",          //
           group + "AAAC" + sample,                       // fewer samples than its count
           group + "____" + sample,                       //
           group + "AAAA" + sample,                       // more samples than its count
           group_with_one_sample + "AAABBA__C,AAB",       // not a digit
           group + "AA B" + sample,                       //
           group.substr(0, 10) + "\n" + "AAAB" + sample,  //
           "_" + group.substr(1) + "AAAA",                // hash exceeds 64 bits
           group_with_one_sample + "AAABBA__DgAAB",       // alignment 3
           group_with_one_sample + "AAABBA__CgAAA",       // a residual that is never written
           std::string("1f 1,2,3,4,5,6,7;"),              // format of schema 2
       }) {
    EXPECT_FALSE(read_kriging(text)) << text;
  }
}

TEST(ResidualKriging, ReaderSurvivesTruncatedAndCorruptText) {
  ResidualKriging kriging;
  for (const std::int64_t batch : {1, 7, 64}) add(kriging, convolution(batch, 56), 0.5, -0.3);
  const std::string text = kriging_text(kriging);
  for (std::size_t size = 1; size < text.size(); ++size) EXPECT_FALSE(read_kriging(text.substr(0, size))) << size;
  for (std::size_t position = 0; position < text.size(); ++position) {
    for (int letter = 0; letter < 256; ++letter) {
      std::string corrupt_text = text;
      corrupt_text[position] = static_cast<char>(letter);
      const Result<ResidualKriging> parsed_kriging = read_kriging(corrupt_text);
      if (parsed_kriging) {
        EXPECT_EQ(kriging_text(*parsed_kriging), corrupt_text);
      }
    }
  }
}

}  // namespace
}  // namespace joulemap::predict
