// SPDX-License-Identifier: Apache-2.0
//
// Reads tables of an SQLite database row by row: the face of SQLite, which no other folder includes. Files are opened
// for reading only, and nothing that is stored in one is run: views and virtual tables count as missing. One thread at
// a time.
//
//   Result<SqliteDatabase> database = SqliteDatabase::open(path);
//   SqliteRows rows = database->rows("StringIds", {"id", "value"});
//   while (rows.next()) {
//     if (const auto id = rows.integer(0)) names.emplace(*id, rows.text(1));
//   }
//   if (!rows.damage().empty()) ...
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
  // Goes to the next row; false after the last, and where the file makes no sense any more.
  bool next();
  // What is wrong with the file; empty when nothing is.
  const std::string& damage() const { return damage_; }

  // Of the present row, by the number of the column in the list given. Nothing or empty for NULL, for a column that the
  // table does not have, and for a value of another type: is_null tells the first two apart from the last.
  std::optional<std::int64_t> integer(int column) const;
  std::string_view text(int column) const;  // until next()
  bool is_null(int column) const;
  bool is_text(int column) const;

 private:
  friend class SqliteDatabase;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };

  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  sqlite3* database_ = nullptr;
  std::uint64_t rows_left_ = 0;
  std::string damage_;
};

class SqliteDatabase {
 public:
  // An error when it is no database.
  static Result<SqliteDatabase> open(const std::string& path);
  static Result<SqliteDatabase> from_bytes(std::string_view bytes);

  bool has_table(std::string_view name) const { return !columns(name).empty(); }
  // In their order; empty when there is no such table.
  std::vector<std::string> columns(std::string_view table) const;

  // In the order of the file. No rows when there is no such table. Must not outlive the database.
  SqliteRows rows(std::string_view table, std::initializer_list<std::string_view> columns) const;

 private:
  struct Closer {
    void operator()(sqlite3* database) const;
  };

  static Result<SqliteDatabase> prepared(std::unique_ptr<sqlite3, Closer> database, std::string_view name,
                                         std::uint64_t bytes);
  SqliteRows query(const std::string& sql, std::string_view argument) const;

  std::unique_ptr<sqlite3, Closer> database_;
  std::uint64_t bytes_ = 0;
};

}  // namespace joulemap::formats
