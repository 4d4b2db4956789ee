// SPDX-License-Identifier: Apache-2.0
#include "formats/json_cursor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace joulemap::formats {
namespace {

// A text with the padding that JsonCursor requires.
class PaddedText {
 public:
  explicit PaddedText(std::string text) : size_(text.size()), text_(std::move(text)) {
    text_.append(kScanPadding_bytes, '\0');
  }
  JsonCursor make_cursor(QuoteRule rule = QuoteRule::strict) const {
    return JsonCursor(text_.data(), text_.data() + size_, rule);
  }

 private:
  std::size_t size_;
  std::string text_;
};

std::optional<std::int64_t> thousandths(const std::string& number) {
  const PaddedText text(number);
  JsonCursor json = text.make_cursor();
  std::int64_t value = 0;
  return json.thousandths(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> integer(const std::string& number) {
  const PaddedText text(number);
  JsonCursor json = text.make_cursor();
  std::int64_t value = 0;
  return json.integer(value) ? std::optional(value) : std::nullopt;
}

std::vector<std::string> keys(const std::string& object) {
  const PaddedText text(object);
  JsonCursor json = text.make_cursor();
  std::vector<std::string> key_names;
  json.enter_object();
  for (std::string_view key; json.next_member(key); json.skip()) key_names.emplace_back(key);
  if (json.failed()) key_names.emplace_back("failed");
  return key_names;
}

TEST(JsonCursor, IteratesOverMembers) {
  EXPECT_EQ(keys(R"({"a": 1, "b": [1, {"x": "]}"}], "c": {"d": {}}, "e": "\"}", "f": null})"),
            (std::vector<std::string>{"a", "b", "c", "e", "f"}));
  EXPECT_EQ(keys("{}"), std::vector<std::string>{});
  EXPECT_EQ(keys("\r\n {\r\n\t\"a\"\r\n:\t1\r\n}"), std::vector<std::string>{"a"});
}

TEST(JsonCursor, ReadsTimesExactlyBeyondDoublePrecision) {
  EXPECT_EQ(thousandths("1669783687464181"), 1669783687464181000);
  EXPECT_EQ(thousandths("1712195495519689.0"), 1712195495519689000);
  EXPECT_EQ(thousandths("3845405621393.164"), 3845405621393164);
  EXPECT_EQ(thousandths("9223372036854774.999"), 9223372036854774999);
  EXPECT_EQ(thousandths("9223372036854776"), std::nullopt);  // above 63 bits
  EXPECT_EQ(thousandths("0.001"), 1);
  EXPECT_EQ(thousandths("63.81"), 63810);
  EXPECT_EQ(thousandths("0"), 0);
  EXPECT_EQ(thousandths("-2.5"), -2500);
  EXPECT_EQ(thousandths("\"17.25\""), 17250);
  EXPECT_EQ(thousandths("1.7121954955196892e15"), 1712195495519689200);
  EXPECT_EQ(thousandths("5E-3"), 5);
  EXPECT_EQ(thousandths("12.3456789"), 12345);
  EXPECT_EQ(thousandths("9007199254740993.123"), 9007199254740993123);
}

TEST(JsonCursor, RejectsNumbersOutOfRange) {
  EXPECT_EQ(thousandths("1e300"), std::nullopt);
  EXPECT_EQ(thousandths("99999999999999999999999"), std::nullopt);
  EXPECT_EQ(thousandths("9223372036854775807"), std::nullopt);
  EXPECT_EQ(thousandths("nan"), std::nullopt);
  EXPECT_EQ(thousandths("\"\""), std::nullopt);
  EXPECT_EQ(integer("9223372036854775807"), 9223372036854775807);
  EXPECT_EQ(integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(integer("1790857026000000000"), 1790857026000000000);
  EXPECT_EQ(integer("12345678"), 12345678);
  EXPECT_EQ(integer("123456789"), 123456789);
  EXPECT_EQ(integer("-1"), -1);
  EXPECT_EQ(integer("0x0"), std::nullopt);
}

TEST(JsonCursor, ReadsAnyCountOfDigits) {
  std::string digits;
  for (int i = 1; i <= 16; ++i) {
    digits += static_cast<char>('0' + i % 10);
    EXPECT_EQ(thousandths(digits + ".5"), std::stoll(digits) * 1000 + 500) << digits;
    EXPECT_EQ(integer(digits), std::stoll(digits)) << digits;
  }
}

TEST(JsonCursor, AStrayQuoteFailsUnlessTheLenientRuleApplies) {
  const PaddedText text(R"({"name": "operator()<"a">", "args": {"k": ["x"y"]}, "z": 1})");
  JsonCursor strict_cursor = text.make_cursor();
  std::string_view key;
  strict_cursor.enter_object();
  while (strict_cursor.next_member(key)) strict_cursor.skip();
  EXPECT_TRUE(strict_cursor.failed());
  EXPECT_FALSE(strict_cursor.needs_more_text());

  JsonCursor kind = text.make_cursor(QuoteRule::lenient);
  kind.enter_object();
  ASSERT_TRUE(kind.next_member(key));
  EXPECT_EQ(kind.text().raw, R"(operator()<"a">)");
  ASSERT_TRUE(kind.next_member(key));
  kind.skip();
  ASSERT_TRUE(kind.next_member(key));
  EXPECT_EQ(key, "z");
  kind.skip();
  EXPECT_FALSE(kind.next_member(key));
  EXPECT_FALSE(kind.failed());
}

TEST(JsonCursor, ATruncatedTextNeedsMoreInput) {
  const std::string complete_text = R"({"a": "text \" more", "b": [1, 2, {"c": "d"}], "e": 12.5})";
  for (std::size_t size = 0; size < complete_text.size(); ++size) {
    const PaddedText text(complete_text.substr(0, size));
    JsonCursor json = text.make_cursor();
    json.enter_object();
    for (std::string_view key; json.next_member(key);) json.skip();
    EXPECT_TRUE(json.needs_more_text()) << size;
  }
}

TEST(JsonCursor, RejectsInvalidStructure) {
  for (const char* const text : {"[1]", "{1}", R"({"a" 1})", R"({"a": 1 "b": 2})", R"({"a": })",
                                 R"({"a": 1, , "b": 2})", R"({"a": "x"y, "b": 1})", R"({"a"b: 1})"}) {
    EXPECT_EQ(keys(text).back(), "failed") << text;
  }
}

TEST(JsonCursor, AcceptsControlCharactersAndNonJsonWords) {
  EXPECT_EQ(keys("{\"a\": \"one\ntwo\x01\", \"b\": inf, \"c\": NaN, \"d\": 1}"),
            (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(JsonCursor, ArraysAreReadElementByElement) {
  const PaddedText text("[2400, 1 , 7]");
  JsonCursor json = text.make_cursor();
  std::vector<std::int64_t> numbers;
  json.enter_array();
  for (std::int64_t number = 0; json.next_element() && json.integer(number);) numbers.push_back(number);
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{2400, 1, 7}));
  EXPECT_FALSE(json.failed());
}

TEST(JsonText, DecodesEscapes) {
  const auto unescape = [](std::string_view escaped_text) {
    std::string out;
    unescape_json(escaped_text, out);
    return out;
  };
  EXPECT_EQ(unescape(R"(a\"b\\c\/d\n\t)"), "a\"b\\c/d\n\t");
  EXPECT_EQ(unescape(R"(\u0041\u00e4\u20ac\ud83d\ude00)"), "A\u00e4\u20ac\U0001F600");
  EXPECT_EQ(unescape(R"(\ud83d!)"), "\uFFFD!");
  EXPECT_EQ(unescape(R"(\ud83d\u0041)"), "\uFFFDA");
  EXPECT_EQ(unescape(R"(\q \u12 \)"), R"(\q \u12 \)");
}

}  // namespace
}  // namespace joulemap::formats
