// SPDX-License-Identifier: Apache-2.0
#include "scopes/cause_names.h"

#include <gtest/gtest.h>

namespace joulemap::scopes {
namespace {

TEST(CauseClass, ClassifiesByName) {
  EXPECT_EQ(cause_class_from_name("cudaStreamSynchronize"), CauseClass::synchronisation);
  EXPECT_EQ(cause_class_from_name("cudaMemcpyAsync"), CauseClass::memory);
  EXPECT_EQ(cause_class_from_name("cudaLaunchKernel"), CauseClass::launch);
  EXPECT_FALSE(cause_class_from_name("aten::conv2d"));
}

TEST(CauseClass, AnUninformativeNameIsComputing) {
  const Cause cause = cause_from_name("aten::conv2d", 2.5);
  EXPECT_EQ(cause.largest_class, CauseClass::compute);
  EXPECT_EQ(cause.basis, CauseBasis::name);
  EXPECT_EQ(cause.times_s[CauseClass::compute], 2.5);
  EXPECT_EQ(cause.times_s.sum(), 2.5);
}

TEST(CauseClass, TheLargestClassHasTheMostTime) {
  AmountByCause times;
  times[CauseClass::launch] = 1;
  AmountByCause added;
  added[CauseClass::synchronisation] = 4;
  times.add(added, 0.5);
  EXPECT_EQ(times.largest_class(), CauseClass::synchronisation);
  EXPECT_EQ(times.sum(), 3);
}

TEST(CauseClass, EveryClassIsFoundByItsText) {
  for (const CauseClass cause : kCauseClasses) EXPECT_EQ(parse_cause_class(to_string(cause)), cause);
  EXPECT_FALSE(parse_cause_class("weather"));
}

}  // namespace
}  // namespace joulemap::scopes
