// SPDX-License-Identifier: Apache-2.0
#include "formats/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace joulemap::formats {
namespace {

template <class T>
std::string format_member_json(const T& content) {
  JsonWriter json;
  json.begin_object().member("x", content).end_object();
  return std::move(json).text();
}

TEST(JsonWriter, WritesObjectsArraysAndPlainValues) {
  JsonWriter json;
  json.begin_object().member("name", "package-0").member("counted", true).key("list").begin_array();
  json.value(1).value(2.5).null().end_array().end_object();
  EXPECT_EQ(std::move(json).text(), R"({"name":"package-0","counted":true,"list":[1,2.5,null]})");
}

TEST(JsonWriter, WritesNullForUnknownValues) {
  EXPECT_EQ(format_member_json(std::optional<double>{}), R"({"x":null})");
  EXPECT_EQ(format_member_json(std::numeric_limits<double>::quiet_NaN()), R"({"x":null})");
  EXPECT_EQ(format_member_json(std::numeric_limits<double>::infinity()), R"({"x":null})");
}

TEST(JsonWriter, KeepsAllDigitsOfALargeInteger) {
  EXPECT_EQ(format_member_json(std::uint64_t{18446744073709551615u}), R"({"x":18446744073709551615})");
}

TEST(JsonWriter, StaysValidForAnyBytesInAText) {
  EXPECT_EQ(format_member_json("a\"b\\c\n"), R"({"x":"a\"b\\c\n"})");
  EXPECT_EQ(format_member_json("caf\xc3\xa9"), "{\"x\":\"caf\xc3\xa9\"}");
  EXPECT_EQ(format_member_json("bad\xff\xc3"), "{\"x\":\"bad\xef\xbf\xbd\xef\xbf\xbd\"}");
}

TEST(JsonWriter, EscapesTerminalControlSequences) {
  JsonWriter json;
  json.value("\u202E\u2028\xC2\x9B");
  EXPECT_EQ(std::move(json).text(), "\"\\u202e\\u2028\\u009b\"");
}

}  // namespace
}  // namespace joulemap::formats
