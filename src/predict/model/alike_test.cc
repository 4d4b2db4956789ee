// SPDX-License-Identifier: Apache-2.0
#include "predict/model/alike.h"

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

TEST(Alike, SizesAndResidualsAreKeptAsFarAsATextHoldsThem) {
  const AlikeSample least = sample_of(convolution(1, 1), -7, -HUGE_VAL);
  EXPECT_EQ(least.time, -2047);
  EXPECT_EQ(least.power, -2047);
  EXPECT_EQ(least.sizes[0], 0);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const Operation large = convolution(most, most);
  const AlikeSample beyond = sample_of(large, 7, 2.0469);
  EXPECT_EQ(beyond.time, 2047);
  EXPECT_EQ(beyond.power, 2047);
  EXPECT_EQ(beyond.sizes[0], 4095);
  Alike alike;
  alike.add(large, false, least);
  alike.add(large, true, beyond);
  const Result<Alike> read = read_alike(alike_text(alike));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->groups, alike.groups);
}

TEST(Alike, ASampleTakesThirteenLettersAndAGroupFifteen) {
  Alike alike;
  alike.groups[0x0123456789abcdef] = {{{0, 1, 64, 4095}, 2, 0, -2047}};
  EXPECT_EQ(alike_text(alike), "AEjRWeJq83vAAABAAABBA__CgAAB");
  alike.groups.begin()->second.resize(100);
  EXPECT_EQ(alike_text(alike).size(), 15U + 100 * 13);
}

TEST(Alike, ATextThatMakesNoSenseIsAnError) {
  const std::string group = "AEjRWeJq83v";
  const std::string sample = "AAABBA__CgAAB";
  ASSERT_TRUE(read_alike(group + "AAAB" + sample));
  ASSERT_TRUE(read_alike(group + "AAAA"));
  const std::string one = group + "AAAB";
  for (const std::string& text : {
           "x" + one + sample,                            // longer
           one + sample + "A",                            //
           group + "AAAC" + sample,                       // fewer samples than its count
           group + "____" + sample,                       //
           group + "AAAA" + sample,                       // more samples than its count
           one + "AAABBA__C,AAB",                         // not a digit
           group + "AA B" + sample,                       //
           group.substr(0, 10) + "\n" + "AAAB" + sample,  //
           "_" + group.substr(1) + "AAAA",                // hash exceeds 64 bits
           one + "AAABBA__DgAAB",                         // alignment 3
           one + "AAABBA__CgAAA",                         // a residual that is never written
           std::string("1f 1,2,3,4,5,6,7;"),              // format of schema 2
       }) {
    EXPECT_FALSE(read_alike(text)) << text;
  }
}

TEST(Alike, NoPartOfATextAndNoOtherLetterInItMisleadsTheReader) {
  Alike alike;
  for (const std::int64_t batch : {1, 7, 64}) add(alike, convolution(batch, 56), 0.5, -0.3);
  const std::string text = alike_text(alike);
  for (std::size_t size = 1; size < text.size(); ++size) EXPECT_FALSE(read_alike(text.substr(0, size))) << size;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int letter = 0; letter < 256; ++letter) {
      std::string other = text;
      other[at] = static_cast<char>(letter);
      const Result<Alike> read = read_alike(other);
      if (read) {
        EXPECT_EQ(alike_text(*read), other);
      }
    }
  }
}

}  // namespace
}  // namespace joulemap::predict
