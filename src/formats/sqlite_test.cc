// SPDX-License-Identifier: Apache-2.0
#include "formats/sqlite.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/sqlite_file.h"
#include "support/temporary_directory.h"

namespace joulemap::formats {
namespace {

SqliteDatabase open_database_from_sql(const std::string& sql) {
  Result<SqliteDatabase> database = SqliteDatabase::from_bytes(sqlite_bytes(sql));
  EXPECT_TRUE(database) << database.error().message;
  return std::move(*database);
}

TEST(Sqlite, ReturnsTheRowsOfATableWithTheirTypes) {
  const SqliteDatabase database = open_database_from_sql(
      "CREATE TABLE t (a INT, b, [odd \"name]); INSERT INTO t VALUES (7, 'x', NULL), ('no', 1.5, 9)");
  EXPECT_EQ(database.column_names("t"), (std::vector<std::string>{"a", "b", "odd \"name"}));
  SqliteRows rows = database.rows("t", {"odd \"name", "b", "a", "missing"});
  ASSERT_TRUE(rows.next());
  EXPECT_TRUE(rows.is_null(0));
  EXPECT_EQ(rows.text(1), "x");
  EXPECT_EQ(rows.integer(2), 7);
  EXPECT_TRUE(rows.is_null(3));
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.integer(0), 9);
  EXPECT_EQ(rows.integer(1), std::nullopt);
  EXPECT_EQ(rows.integer(2), std::nullopt);
  EXPECT_FALSE(rows.is_null(2));
  EXPECT_FALSE(rows.next());
  EXPECT_FALSE(rows.next());
  EXPECT_EQ(rows.damage_text(), "");
}

TEST(Sqlite, ViewsAndMissingTablesHaveNoRows) {
  const SqliteDatabase database = open_database_from_sql("CREATE TABLE t (a); CREATE VIEW v AS SELECT 1 AS a FROM t");
  EXPECT_TRUE(database.has_table("t"));
  EXPECT_FALSE(database.has_table("v"));
  EXPECT_FALSE(database.has_table("none"));
  EXPECT_FALSE(database.rows("v", {"a"}).next());
  EXPECT_FALSE(database.rows("none", {"a"}).next());
}

TEST(Sqlite, AFileThatIsNoDatabaseIsAnError) {
  EXPECT_FALSE(SqliteDatabase::from_bytes("hello, this is no database, but a text that is long enough"));
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/x.sqlite";
  const Result<SqliteDatabase> missing_database = SqliteDatabase::open(path);
  ASSERT_FALSE(missing_database);
  EXPECT_EQ(missing_database.error().code, ErrorCode::not_found);
  std::ofstream(path) << std::string(5000, 'x');
  const Result<SqliteDatabase> invalid_database = SqliteDatabase::open(path);
  ASSERT_FALSE(invalid_database);
  EXPECT_EQ(invalid_database.error().code, ErrorCode::malformed);
  EXPECT_NE(invalid_database.error().message.find(path), std::string::npos);
}

TEST(Sqlite, ADamagedPageEndsTheRowsWithAnError) {
  std::string sql = "CREATE TABLE t (a, b);";
  for (int i = 0; i < 3000; ++i) sql += "INSERT INTO t VALUES (" + std::to_string(i) + ", 'some text');";
  std::string bytes = sqlite_bytes("BEGIN;" + sql + "COMMIT");
  const std::size_t damage_begin = bytes.size() / 2;
  for (std::size_t i = damage_begin; i < damage_begin + 4096; ++i) bytes[i] = '\x5a';
  const Result<SqliteDatabase> database = SqliteDatabase::from_bytes(bytes);
  ASSERT_TRUE(database);
  SqliteRows rows = database->rows("t", {"a"});
  int count = 0;
  while (rows.next()) ++count;
  EXPECT_GT(count, 100);
  EXPECT_LT(count, 3000);
  EXPECT_NE(rows.damage_text(), "");
}

}  // namespace
}  // namespace joulemap::formats
