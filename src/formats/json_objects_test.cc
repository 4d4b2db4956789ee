// SPDX-License-Identifier: Apache-2.0
#include "formats/json_objects.h"

#include <gtest/gtest.h>

#include <vector>

namespace joulemap::formats {
namespace {

TEST(JsonObjects, ReturnsEachObjectWithItsMembers) {
  std::vector<std::string> names;
  std::vector<std::int64_t> durations;
  const JsonObjectsResult read = for_each_json_object(
      R"([{"name": "a", "dur": 5, "args": {"op_name": "Conv", "deep": {"x": 1}, "list": [{"dur": 9}, 3]}}, {"name": "b"}])",
      [&](const JsonFields& fields) {
        names.push_back(std::string(fields.text("name")) + std::string(fields.text("args.op_name")));
        durations.push_back(fields.integer("dur").value_or(-1));
        if (names.size() == 1) {
          EXPECT_EQ(fields.integer("args.deep.x"), 1);
        }
      });
  EXPECT_TRUE(read.is_complete());
  EXPECT_EQ(names, (std::vector<std::string>{"aConv", "b"}));
  EXPECT_EQ(durations, (std::vector<std::int64_t>{5, -1}));
}

std::vector<std::string> read_name_fields(std::string_view text, JsonObjectsResult* read = nullptr) {
  std::vector<std::string> names;
  const JsonObjectsResult result =
      for_each_json_object(text, [&](const JsonFields& fields) { names.emplace_back(fields.text("name")); });
  if (read != nullptr) *read = result;
  return names;
}

TEST(JsonObjects, ReturnsAnArrayAsText) {
  std::string found, nested;
  for_each_json_object(R"([{"args": {"shapes" : [{"float": [1, 2]}, []], "x": 3}, "list": []}])",
                       [&](const JsonFields& fields) {
                         found = fields.array("args.shapes");
                         nested = fields.array("list");
                         EXPECT_EQ(fields.integer("args.x"), 3);
                         EXPECT_EQ(fields.text("args.shapes"), "");
                         EXPECT_EQ(fields.number("list"), std::nullopt);
                         EXPECT_EQ(fields.array("args.x"), "");
                       });
  EXPECT_EQ(found, R"([{"float": [1, 2]}, []])");
  EXPECT_EQ(nested, "[]");
}

TEST(JsonObjects, ATruncatedTextGivesTheObjectsBeforeTheCut) {
  JsonObjectsResult read;
  EXPECT_EQ(read_name_fields(R"([{"name": "a"}, {"name": )", &read), (std::vector<std::string>{"a"}));
  EXPECT_FALSE(read.has_array_ended);
  EXPECT_EQ(read.damaged_count, 1u);
  EXPECT_EQ(read_name_fields(R"([{"name": "a"},)", &read).size(), 1u);
  EXPECT_FALSE(read.has_array_ended);
  EXPECT_EQ(read.damaged_count, 0u);
}

TEST(JsonObjects, TheArrayMayBeAMember) {
  JsonObjectsResult read;
  const std::string text =
      "\xef\xbb\xbf\r\n{\"of\": \"traceEvents\", \"traceEvents\" : [ {\"name\": \"a\"}], \"more\": [{\"name\": "
      "\"no\"}]}";
  EXPECT_EQ(read_name_fields(text, &read), (std::vector<std::string>{"a"}));
  EXPECT_TRUE(read.is_complete());
}

TEST(JsonObjects, ReportsAMissingArray) {
  for (const char* text : {"", "{}", "{\"a\": [{\"name\": 1}]}", "hello", "3"}) {
    JsonObjectsResult read;
    EXPECT_TRUE(read_name_fields(text, &read).empty()) << text;
    EXPECT_FALSE(read.has_array) << text;
  }
}

TEST(JsonObjects, AnUnescapedQuoteCostsItsObject) {
  JsonObjectsResult read;
  const char* const text = R"([{"name": "a"}, {"name": "b"b", "list": [{"x": 1}, {"x": 2}]},
                               {"name": "c"}, {"name": "d"}])";
  std::vector<std::string> names = read_name_fields(text, &read);
  std::erase(names, "");  // an object nested in the damaged one may look like an element of the array
  EXPECT_EQ(names, (std::vector<std::string>{"a", "c", "d"}));
  EXPECT_GE(read.damaged_count, 1u);
  EXPECT_TRUE(read.has_array_ended);
}

TEST(JsonObjects, ControlCharactersInATextAreBlanks) {
  JsonObjectsResult read;
  EXPECT_EQ(read_name_fields("[{\"name\": \"a\nb\x01\"}, {\"name\": \"c\"}]", &read),
            (std::vector<std::string>{"a b ", "c"}));
  EXPECT_TRUE(read.is_complete());
}

TEST(JsonObjects, CountsElementsThatAreNoObjects) {
  JsonObjectsResult read;
  EXPECT_EQ(read_name_fields(R"([{"name": "a"}, null, {"name": "b"},{"name": "c"}])", &read).size(), 2u);
  EXPECT_EQ(read.damaged_count, 1u);
}

TEST(JsonObjects, PreservesNumbersVerbatim) {
  for_each_json_object(R"([{"i": 9007199254740993, "d": 1.5, "u": 18446744073709551615, "t": "7"}])",
                       [](const JsonFields& fields) {
                         EXPECT_EQ(fields.integer("i"), 9007199254740993);
                         EXPECT_EQ(fields.integer("d"), std::nullopt);
                         EXPECT_EQ(fields.number("d"), 1.5);
                         EXPECT_EQ(fields.integer("u"), std::nullopt);
                         EXPECT_EQ(fields.number("t"), std::nullopt);
                         EXPECT_EQ(fields.text("t"), "7");
                       });
}

TEST(JsonObjects, SurvivesAMillionBrackets) {
  EXPECT_TRUE(read_name_fields(std::string(1'000'000, '[')).empty());
  std::string deep = "[";
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  EXPECT_TRUE(read_name_fields(deep).empty());
}

}  // namespace
}  // namespace joulemap::formats
