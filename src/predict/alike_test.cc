// SPDX-License-Identifier: Apache-2.0
#include "predict/alike.h"

#include <gtest/gtest.h>

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

void add(Alike& alike, const Operation& operation, double time, double power = 0) {
  alike.add(operation, false, sample_of(operation, time, power));
}

TEST(Alike, WhatWasMeasuredItselfIsToldAlmostAsItWas) {
  Alike alike;
  add(alike, convolution(16, 56), 0.5, -0.2);
  const Interpolated told = alike.ask(convolution(16, 56), false);
  EXPECT_NEAR(told.time, 0.5, 0.02);
  EXPECT_NEAR(told.power, -0.2, 0.01);
  EXPECT_LT(told.doubt, 0.04);
}

TEST(Alike, BetweenTwoSizesLiesWhatLiesBetweenTheirResiduals) {
  Alike alike;
  add(alike, convolution(16, 56), 0.2);
  add(alike, convolution(64, 56), 0.6);
  const Interpolated told = alike.ask(convolution(32, 56), false);
  EXPECT_GT(told.time, 0.3);
  EXPECT_LT(told.time, 0.5);
  EXPECT_GT(told.doubt, alike.ask(convolution(16, 56), false).doubt);
}

TEST(Alike, WithTheDistanceLessIsTold) {
  Alike alike;
  add(alike, convolution(16, 56), 0.5);
  const Interpolated near = alike.ask(convolution(32, 56), false);
  const Interpolated far = alike.ask(convolution(4096, 56), false);
  EXPECT_GT(near.time, far.time);
  EXPECT_LT(near.doubt, far.doubt);
  EXPECT_LE(far.doubt, 1);
}

TEST(Alike, AnotherKernelTypeOrStateOfTheCacheTellsNothing) {
  Alike alike;
  add(alike, convolution(16, 56), 0.5);
  Operation half = convolution(16, 56);
  half.dtype = Dtype::fp16;
  for (const Interpolated& told : {alike.ask(convolution(16, 56, 5), false), alike.ask(half, false),
                                   alike.ask(convolution(16, 56), true), Alike().ask(half, false)}) {
    EXPECT_EQ(told.time, 0);
    EXPECT_EQ(told.doubt, 1);
  }
}

TEST(Alike, ASampleMayBeLeftOutToSeeWhatTheOthersTellOfIt) {
  Alike alike;
  add(alike, convolution(16, 56), 0.5);
  add(alike, convolution(64, 56), -0.5);
  const AlikeSample own = sample_of(convolution(16, 56), 0.5, 0);
  EXPECT_LT(alike.ask(convolution(16, 56), false, &own).time, 0);
}

TEST(Alike, ATextTellsTheSame) {
  Alike alike;
  for (const std::int64_t batch : {1, 7, 64})
    add(alike, convolution(batch, 56), 0.01 * static_cast<double>(batch), -0.3);
  add(alike, convolution(16, 28, 5), -1.25, 0.4);
  const Result<Alike> read = read_alike(alike_text(alike));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->groups, alike.groups);
  EXPECT_TRUE(read_alike("")->groups.empty());
}

TEST(Alike, ATextThatMakesNoSenseIsAnError) {
  for (const std::string_view text :
       {"x", "1f", "1f ;", "1f 1,2,3,4,5,6,7", "1f 1,2,3,4,5,6;", "1f 1,2,3,4,5,6,7,8;", "1f 1,2,3,4,5,6,7;z"})
    EXPECT_FALSE(read_alike(text)) << text;
}

}  // namespace
}  // namespace joulemap::predict
