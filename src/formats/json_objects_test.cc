// SPDX-License-Identifier: Apache-2.0
#include "formats/json_objects.h"

#include <gtest/gtest.h>

#include <vector>

namespace joulemap::formats {
namespace {

TEST(JsonObjects, ReturnsEachObjectWithItsMembers) {
  std::vector<std::string> names;
  std::vector<std::int64_t> durations;
  const JsonObjectsResult scan_result = for_each_json_object(
      R"([{"name": "a", "dur": 5, "args": {"op_name": "Conv", "deep": {"x": 1}, "list": [{"dur": 9}, 3]}}, {"name": "b"}])",
      [&](const JsonFields& fields) {
        names.push_back(std::string(fields.text("name")) + std::string(fields.text("args.op_name")));
        durations.push_back(fields.integer("dur").value_or(-1));
        if (names.size() == 1) {
          EXPECT_EQ(fields.integer("args.deep.x"), 1);
        }
      });
  EXPECT_TRUE(scan_result.is_complete());
  EXPECT_EQ(names, (std::vector<std::string>{"aConv", "b"}));
  EXPECT_EQ(durations, (std::vector<std::int64_t>{5, -1}));
}

std::vector<std::string> read_name_fields(std::string_view text, JsonObjectsResult* scan_result = nullptr) {
  std::vector<std::string> names;
  const JsonObjectsResult result =
      for_each_json_object(text, [&](const JsonFields& fields) { names.emplace_back(fields.text("name")); });
  if (scan_result != nullptr) *scan_result = result;
  return names;
}

TEST(JsonObjects, ReturnsAnArrayAsText) {
  std::string shapes_text, nested;
  for_each_json_object(R"([{"args": {"shapes" : [{"float": [1, 2]}, []], "x": 3}, "list": []}])",
                       [&](const JsonFields& fields) {
                         shapes_text = fields.array("args.shapes");
                         nested = fields.array("list");
                         EXPECT_EQ(fields.integer("args.x"), 3);
                         EXPECT_EQ(fields.text("args.shapes"), "");
                         EXPECT_EQ(fields.number("list"), std::nullopt);
                         EXPECT_EQ(fields.array("args.x"), "");
                       });
  EXPECT_EQ(shapes_text, R"([{"float": [1, 2]}, []])");
  EXPECT_EQ(nested, "[]");
}

TEST(JsonObjects, ATruncatedTextGivesTheObjectsBeforeTheCut) {
  JsonObjectsResult scan_result;
  EXPECT_EQ(read_name_fields(R"([{"name": "a"}, {"name": )", &scan_result), (std::vector<std::string>{"a"}));
  EXPECT_FALSE(scan_result.has_array_ended);
  EXPECT_EQ(scan_result.damaged_count, 1u);
  EXPECT_EQ(read_name_fields(R"([{"name": "a"},)", &scan_result).size(), 1u);
  EXPECT_FALSE(scan_result.has_array_ended);
  EXPECT_EQ(scan_result.damaged_count, 0u);
}

TEST(JsonObjects, TheArrayMayBeAMember) {
  JsonObjectsResult scan_result;
  const std::string text =
      "\xef\xbb\xbf\r\n{\"of\": \"traceEvents\", \"traceEvents\" : [ {\"name\": \"a\"}], \"more\": [{\"name\": "
      "\"no\"}]}";
  EXPECT_EQ(read_name_fields(text, &scan_result), (std::vector<std::string>{"a"}));
  EXPECT_TRUE(scan_result.is_complete());
}

TEST(JsonObjects, ReportsAMissingArray) {
  for (const char* text : {"", "{}", "{\"a\": [{\"name\": 1}]}", "hello", "3"}) {
    JsonObjectsResult scan_result;
    EXPECT_TRUE(read_name_fields(text, &scan_result).empty()) << text;
    EXPECT_FALSE(scan_result.has_array) << text;
  }
}

TEST(JsonObjects, AnUnescapedQuoteCostsItsObject) {
  JsonObjectsResult scan_result;
  const char* const text = R"([{"name": "a"}, {"name": "b"b", "list": [{"x": 1}, {"x": 2}]},
                               {"name": "c"}, {"name": "d"}])";
  std::vector<std::string> names = read_name_fields(text, &scan_result);
  std::erase(names, "");  // an object nested in the damaged one may look like an element of the array
  EXPECT_EQ(names, (std::vector<std::string>{"a", "c", "d"}));
  EXPECT_GE(scan_result.damaged_count, 1u);
  EXPECT_TRUE(scan_result.has_array_ended);
}

TEST(JsonObjects, ControlCharactersInATextAreBlanks) {
  JsonObjectsResult scan_result;
  EXPECT_EQ(read_name_fields("[{\"name\": \"a\nb\x01\"}, {\"name\": \"c\"}]", &scan_result),
            (std::vector<std::string>{"a b ", "c"}));
  EXPECT_TRUE(scan_result.is_complete());
}

TEST(JsonObjects, CountsElementsThatAreNoObjects) {
  JsonObjectsResult scan_result;
  EXPECT_EQ(read_name_fields(R"([{"name": "a"}, null, {"name": "b"},{"name": "c"}])", &scan_result).size(), 2u);
  EXPECT_EQ(scan_result.damaged_count, 1u);
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
  std::string nested_objects = "[";
  for (int i = 0; i < 100'000; ++i) nested_objects += "{\"a\":";
  EXPECT_TRUE(read_name_fields(nested_objects).empty());
}

}  // namespace
}  // namespace joulemap::formats
