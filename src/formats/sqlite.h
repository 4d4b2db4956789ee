// SPDX-License-Identifier: Apache-2.0
//
// Reads tables of an SQLite database row by row. Wraps SQLite, which no other folder includes. Opens files read-only
// and runs nothing stored in them: views and virtual tables count as missing. One thread at a time.
//
//   Result<SqliteDatabase> database = SqliteDatabase::open(path);
//   SqliteRows rows = database->rows("StringIds", {"id", "value"});
//   while (rows.next()) {
//     if (const auto id = rows.integer(0)) names.emplace(*id, rows.text(1));
//   }
//   if (!rows.damage_text().empty()) ...
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace joulemap::formats {

class SqliteRows {
 public:
  // Moves to the next row; false after the last one and at damage.
  bool next();
  // Description of the damage; empty if there is none.
  const std::string& damage_text() const { return damage_text_; }

  // Values of the current row; `column` is the index in the requested list. Return nullopt or empty for NULL, for a
  // column that the table lacks, and for a value of another type. is_null() is true only in the first two cases.
  std::optional<std::int64_t> integer(int column) const;
  std::string_view text(int column) const;  // valid until next()
  bool is_null(int column) const;
  bool is_text(int column) const;

 private:
  friend class SqliteDatabase;
  struct StatementFinalizer {
    void operator()(sqlite3_stmt* statement) const;
  };

  std::unique_ptr<sqlite3_stmt, StatementFinalizer> statement_;
  sqlite3* database_ = nullptr;
  std::uint64_t remaining_row_limit_ = 0;
  std::string damage_text_;
};

class SqliteDatabase {
 public:
  // Fails if the file is not a database.
  static Result<SqliteDatabase> open(const std::string& path);
  static Result<SqliteDatabase> from_bytes(std::string_view bytes);

  bool has_table(std::string_view name) const { return !column_names(name).empty(); }
  // Names of the table's columns, in its order; empty if there is no such table.
  std::vector<std::string> column_names(std::string_view table) const;

  // The rows in stored order; none if there is no such table. The result must not outlive the database.
  SqliteRows rows(std::string_view table, std::initializer_list<std::string_view> columns) const;

 private:
  struct DatabaseCloser {
    void operator()(sqlite3* database) const;
  };

  static Result<SqliteDatabase> check_opened_database(std::unique_ptr<sqlite3, DatabaseCloser> database,
                                                      std::string_view name, std::uint64_t bytes);
  SqliteRows run_query(const std::string& sql, std::string_view argument) const;

  std::unique_ptr<sqlite3, DatabaseCloser> database_;
  std::uint64_t bytes_ = 0;
};

}  // namespace joulemap::formats
