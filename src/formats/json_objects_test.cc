// SPDX-License-Identifier: Apache-2.0
#include "formats/json_objects.h"

#include <gtest/gtest.h>

#include <vector>

namespace joulemap::formats {
namespace {

TEST(JsonObjects, GivesEachObjectWithItsMembers) {
  std::vector<std::string> names;
  std::vector<std::int64_t> durations;
  const bool whole = for_each_json_object(
      R"([{"name": "a", "dur": 5, "args": {"op_name": "Conv", "deep": {"x": 1}, "list": [{"dur": 9}, 3]}}, {"name": "b"}])",
      [&](const JsonFields& fields) {
        names.push_back(std::string(fields.text("name")) + std::string(fields.text("args.op_name")));
        durations.push_back(fields.integer("dur").value_or(-1));
        if (names.size() == 1) {
          EXPECT_EQ(fields.integer("args.deep.x"), 1);
        }
      });
  EXPECT_TRUE(whole);
  EXPECT_EQ(names, (std::vector<std::string>{"aConv", "b"}));
  EXPECT_EQ(durations, (std::vector<std::int64_t>{5, -1}));
}

TEST(JsonObjects, ATextThatIsCutGivesWhatCameBefore) {
  int count = 0;
  EXPECT_FALSE(for_each_json_object(R"([{"a": 1}, {"a": )", [&](const JsonFields&) { ++count; }));
  EXPECT_EQ(count, 1);
}

TEST(JsonObjects, AMillionBracketsDoNoHarm) {
  EXPECT_FALSE(for_each_json_object(std::string(1'000'000, '['), [](const JsonFields&) {}));
}

}  // namespace
}  // namespace joulemap::formats
