// SPDX-License-Identifier: Apache-2.0
#include "model/cause_class.h"

#include <gtest/gtest.h>

namespace joulemap {
namespace {

TEST(CauseClass, NamesTellWhatTheyCan) {
  EXPECT_EQ(cause_in_name("cudaStreamSynchronize"), CauseClass::synchronisation);
  EXPECT_EQ(cause_in_name("cudaMemcpyAsync"), CauseClass::memory);
  EXPECT_EQ(cause_in_name("cudaLaunchKernel"), CauseClass::launch);
  EXPECT_FALSE(cause_in_name("aten::conv2d"));
}

TEST(CauseClass, ANameThatTellsNothingIsTakenForComputing) {
  const Cause cause = cause_by_name("aten::conv2d", 2.5);
  EXPECT_EQ(cause.largest, CauseClass::compute);
  EXPECT_EQ(cause.basis, CauseBasis::name);
  EXPECT_EQ(cause.times_s[CauseClass::compute], 2.5);
  EXPECT_EQ(cause.times_s.sum(), 2.5);
}

TEST(CauseClass, TheClassWithTheMostTimeIsTheLargest) {
  ByCause times;
  times[CauseClass::launch] = 1;
  ByCause others;
  others[CauseClass::synchronisation] = 4;
  times.add(others, 0.5);
  EXPECT_EQ(times.largest(), CauseClass::synchronisation);
  EXPECT_EQ(times.sum(), 3);
}

TEST(CauseClass, EveryClassIsFoundByItsText) {
  for (const CauseClass cause : kCauseClasses) EXPECT_EQ(cause_class_of(to_string(cause)), cause);
  EXPECT_FALSE(cause_class_of("weather"));
}

}  // namespace
}  // namespace joulemap
