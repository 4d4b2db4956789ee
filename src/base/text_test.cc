// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace joulemap {
namespace {

TEST(ParseU64, TakesAWholeNumberSurroundedByBlanks) {
  EXPECT_EQ(parse_u64("262143328850\n"), 262143328850u);
  EXPECT_EQ(parse_u64("  17   \n"), 17u);
  EXPECT_EQ(parse_u64("0x02"), 2u);
  EXPECT_EQ(parse_u64("18446744073709551615"), 18446744073709551615u);
}

TEST(ParseU64, RefusesTextThatIsNotOneNumber) {
  for (const char* text : {"", "\n", "-1", "+1", "12 34", "12a", "1e6", "18446744073709551616", "0x", "<garbage>"}) {
    EXPECT_FALSE(parse_u64(text).has_value()) << text;
  }
}

TEST(ParseDouble, TakesTheScaleOfARaplEvent) {
  EXPECT_DOUBLE_EQ(parse_double("2.3283064365386962890625e-10\n").value(), 0x1p-32);
}

TEST(ParseDouble, RefusesInfinityAndLetters) {
  for (const char* text : {"inf", "nan", "1.0x", "", "1e999"}) EXPECT_FALSE(parse_double(text).has_value()) << text;
}

TEST(ParseCpuList, ReadsRangesAndSingles) { EXPECT_EQ(parse_cpu_list("0,18-19\n"), (std::vector<int>{0, 18, 19})); }

TEST(ParseCpuList, RefusesBackwardEmptyAndEndlessRanges) {
  for (const char* text : {"", "3-1", "0,,1", "0-99999999", "a"})
    EXPECT_FALSE(parse_cpu_list(text).has_value()) << text;
}

TEST(Split, KeepsEmptyPiecesAndSplitBlanksDropsThem) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(split_whitespace("  a \t b\n"), (std::vector<std::string_view>{"a", "b"}));
}

TEST(Quoted, MakesOutsideTextSafeToPrint) {
  EXPECT_EQ(quoted("a\x1b[31m\n"), "'a\\x1b[31m\\x0a'");
  EXPECT_EQ(quoted("abcdef", 3), "'abc...'");
  EXPECT_EQ(quoted("caf\xc3\xa9 \xff \xc2\x9b"), "'caf\xc3\xa9 \\xff \\xc2\\x9b'");
}

}  // namespace
}  // namespace joulemap
