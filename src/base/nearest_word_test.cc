// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_word.h"

#include <gtest/gtest.h>

#include <vector>

namespace joulemap {
namespace {

const std::vector<std::string> kOptionNames = {"by", "fail-over", "filter", "json", "output", "sensors"};

TEST(EditDistance, CountsInsertedDeletedReplacedAndSwappedLetters) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "json"), 4u);
  EXPECT_EQ(edit_distance("json", "json"), 0u);
  EXPECT_EQ(edit_distance("jso", "json"), 1u);
  EXPECT_EQ(edit_distance("jsonn", "json"), 1u);
  EXPECT_EQ(edit_distance("jzon", "json"), 1u);
  EXPECT_EQ(edit_distance("josn", "json"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(NearestWord, FindsTheOptionThatIsMeant) {
  EXPECT_EQ(nearest_word("fail-ovr", kOptionNames), "fail-over");
  EXPECT_EQ(nearest_word("fial-oevr", kOptionNames), "fail-over");
  EXPECT_EQ(nearest_word("sensor", kOptionNames), "sensors");
  EXPECT_EQ(nearest_word("out", kOptionNames), "output");
}

TEST(NearestWord, FindsNothingWhenNoWordIsNear) {
  EXPECT_EQ(nearest_word("period", kOptionNames), std::nullopt);
  EXPECT_EQ(nearest_word("", kOptionNames), std::nullopt);
  EXPECT_EQ(nearest_word("x", kOptionNames), std::nullopt);
  EXPECT_EQ(nearest_word(std::string(1'000'000, 'x'), kOptionNames), std::nullopt);
  EXPECT_EQ(nearest_word("json", {}), std::nullopt);
}

}  // namespace
}  // namespace joulemap
