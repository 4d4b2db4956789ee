// SPDX-License-Identifier: Apache-2.0
#include "base/amount_text.h"

#include <gtest/gtest.h>

namespace joulemap {
namespace {

TEST(AmountText, DigitsAndUnitsAreThoseOfTheRoundedNumber) {
  EXPECT_EQ(amount_text(9.994, "J"), "9.99 J");
  EXPECT_EQ(amount_text(9.9996, "J"), "10.0 J");
  EXPECT_EQ(amount_text(99.96, "J"), "100 J");
  EXPECT_EQ(amount_text(999.6, "J"), "1.00 kJ");
  EXPECT_EQ(amount_text(999.6, "s"), "1000 s");
  EXPECT_EQ(amount_text(7200, "s"), "2.00 h");
}

}  // namespace
}  // namespace joulemap
