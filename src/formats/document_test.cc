// SPDX-License-Identifier: Apache-2.0
#include "formats/document.h"

#include <gtest/gtest.h>

#include "formats/csv.h"

namespace joulemap::formats {
namespace {

TEST(Document, TomlKeepsTheOrderAndTheLinesOfTheFile) {
  const Result<DocumentValue> document = read_toml("zebra = 1\n\n[tables]\nb = [1.5, 'x']\na = true\n", "f.toml");
  ASSERT_TRUE(document) << document.error().message;
  ASSERT_EQ(document->table()->size(), 2u);
  EXPECT_EQ(document->table()->front().key, "zebra");
  EXPECT_EQ(document->integer("zebra"), 1);
  const DocumentValue* const tables = document->find("tables");
  ASSERT_EQ(tables->table()->size(), 2u);
  EXPECT_EQ(tables->table()->front().key, "b");
  EXPECT_EQ(tables->find("b")->line, 4u);
  EXPECT_EQ(tables->find("b")->array()->at(0).number(), 1.5);
  EXPECT_EQ(tables->find("b")->array()->at(1).text(), "x");
  EXPECT_EQ(tables->boolean("a"), true);
}

TEST(Document, ReportsTomlErrorsWithTheirLine) {
  const Result<DocumentValue> document = read_toml("a = 1\nb = [1,\n", "plan.toml");
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().message.find("plan.toml:"), 0u) << document.error().message;
}

TEST(Document, RefusesNonAsciiOutsideQuotesAndComments) {
  const Result<DocumentValue> document =
      read_toml("# mod\xC3\xA8le\n'mod\xC3\xA8le' = \"\"\"\n\\\"caf\xC3\xA9\"\"\"\"\n", "f.toml");
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(document->text_or_empty("mod\xC3\xA8le"), "\"caf\xC3\xA9\"");
  const Result<DocumentValue> rejected_document = read_toml("a = 'x'\nmod\xC3\xA8le = 1\n", "f.toml");
  ASSERT_FALSE(rejected_document);
  EXPECT_NE(rejected_document.error().message.find("f.toml:2"), std::string::npos) << rejected_document.error().message;
}

TEST(Document, JsonIsReadWithItsTypesAndPaths) {
  const Result<DocumentValue> document =
      read_json(R"({"test": {"accuracy": 0.5}, "a.b": 2, "list": [1, null, "x"], "big": 18446744073709551615})", "m");
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(document->find_path("test.accuracy")->number(), 0.5);
  EXPECT_EQ(document->find_path("a.b")->integer(), 2);
  EXPECT_EQ(document->find_path("test.loss"), nullptr);
  EXPECT_TRUE(document->find("list")->array()->at(1).is_null());
  EXPECT_GT(document->number("big").value_or(0), 1e19);
}

TEST(Document, DamagedAndEndlesslyNestedJsonIsRefused) {
  EXPECT_FALSE(read_json("{\"a\": ", "m"));
  EXPECT_FALSE(read_json(std::string(100000, '['), "m"));
  EXPECT_FALSE(read_json("", "m"));
}

TEST(Document, RoundTripsTextThroughToml) {
  const std::string special_text = "quote \" back \\ line\nend \x01 é";
  const Result<DocumentValue> document = read_toml("a = " + toml_string_literal(special_text), "m");
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(document->text_or_empty("a"), special_text);
}

TEST(Csv, RoundTripsItsOutput) {
  const CsvRecord record = {"plain", "with, comma", "with \"quotes\"", "two\nlines", "", "last"};
  EXPECT_EQ(read_csv(csv_line(record) + csv_line({"a"})), (std::vector<CsvRecord>{record, {"a"}}));
}

TEST(Csv, ReadsWindowsLineEndsAndOtherSeparators) {
  EXPECT_EQ(read_csv("a;b\r\n\r\n1;\"2;3\"\r\n", ';'), (std::vector<CsvRecord>{{"a", "b"}, {"1", "2;3"}}));
}

TEST(Document, RefusesDottedKeysAndAcceptsDotsElsewhere) {
  std::string dotted_prefix;
  for (int i = 0; i < 20000; ++i) dotted_prefix += "a.";
  const Result<DocumentValue> rejected_document = read_toml(dotted_prefix + "b = 1\n", "deep.toml");
  ASSERT_FALSE(rejected_document);
  EXPECT_NE(rejected_document.error().message.find("16 parts"), std::string::npos) << rejected_document.error().message;
  EXPECT_FALSE(read_toml("[" + dotted_prefix + "b]\n", "deep.toml"));
  EXPECT_TRUE(
      read_toml("a.b.c = \"" + dotted_prefix + "\" # " + dotted_prefix + "\nd = [1.5, 2.5, 3.5]\n", "flat.toml"));
}

TEST(Toml, RefusesABraceThatClosesNothingInAnArray) {
  for (const char* text : {"a=[}", "a=[1,}", "a={b=[}}", "a=[[}]]"}) {
    const Result<DocumentValue> document = read_toml(text, "plan.toml");
    ASSERT_FALSE(document) << text;
    EXPECT_NE(document.error().message.find("plan.toml"), std::string::npos) << document.error().message;
  }
  EXPECT_TRUE(read_toml("a = [{b = [1, 2]}, {c = \"}]\"}] # ]}\n[t]\n[[u]]\n", "plan.toml"));
}

}  // namespace
}  // namespace joulemap::formats
