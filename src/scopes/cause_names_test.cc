// SPDX-License-Identifier: Apache-2.0
#include "scopes/cause_names.h"

#include <gtest/gtest.h>

namespace joulemap::scopes {
namespace {

TEST(EnergyCauseClass, ClassifiesByName) {
  EXPECT_EQ(cause_class_from_name("cudaStreamSynchronize"), EnergyCauseClass::synchronization);
  EXPECT_EQ(cause_class_from_name("cudaMemcpyAsync"), EnergyCauseClass::memory);
  EXPECT_EQ(cause_class_from_name("cudaLaunchKernel"), EnergyCauseClass::launch);
  EXPECT_FALSE(cause_class_from_name("aten::conv2d"));
}

TEST(EnergyCauseClass, AnUninformativeNameIsComputing) {
  const EnergyCause cause = make_cause_from_name("aten::conv2d", 2.5);
  EXPECT_EQ(cause.largest_class, EnergyCauseClass::compute);
  EXPECT_EQ(cause.basis, CauseBasis::name);
  EXPECT_EQ(cause.times_s[EnergyCauseClass::compute], 2.5);
  EXPECT_EQ(cause.times_s.sum(), 2.5);
}

TEST(EnergyCauseClass, TheLargestClassHasTheMostTime) {
  AmountByCause times;
  times[EnergyCauseClass::launch] = 1;
  AmountByCause added_times;
  added_times[EnergyCauseClass::synchronization] = 4;
  times.add(added_times, 0.5);
  EXPECT_EQ(times.largest_class(), EnergyCauseClass::synchronization);
  EXPECT_EQ(times.sum(), 3);
}

TEST(EnergyCauseClass, EveryClassIsFoundByItsText) {
  for (const EnergyCauseClass cause : kCauseClasses) EXPECT_EQ(parse_cause_class(to_string(cause)), cause);
  EXPECT_FALSE(parse_cause_class("weather"));
}

}  // namespace
}  // namespace joulemap::scopes
