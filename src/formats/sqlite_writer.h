// SPDX-License-Identifier: Apache-2.0
//
// Builds an SQLite database in memory, table by table. Owned and used by one thread.
//
//   SqliteWriter database;
//   database.begin_table("steps", {"number INTEGER", "energy_j REAL"});
//   database.add_row({12, 4.2});
//   Result<std::string> file = std::move(database).take_bytes();
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace joulemap::formats {

// One value of a row. An empty optional and non-finite numbers become NULL.
class SqliteValue {
 public:
  SqliteValue(std::int64_t number) : value_(number) {}                              // NOLINT
  SqliteValue(std::uint64_t number) : value_(static_cast<std::int64_t>(number)) {}  // NOLINT
  SqliteValue(int number) : value_(static_cast<std::int64_t>(number)) {}            // NOLINT
  SqliteValue(bool truth) : value_(static_cast<std::int64_t>(truth ? 1 : 0)) {}     // NOLINT
  SqliteValue(double number) : value_(number) {}                                    // NOLINT
  SqliteValue(std::string_view text) : value_(text) {}                              // NOLINT
  SqliteValue(const std::string& text) : value_(std::string_view(text)) {}          // NOLINT
  SqliteValue(const char* text) : value_(std::string_view(text)) {}                 // NOLINT
  template <class T>
  SqliteValue(const std::optional<T>& optional_value) {  // NOLINT
    if (optional_value) *this = SqliteValue(*optional_value);
  }

 private:
  friend class SqliteWriter;
  std::variant<std::monostate, std::int64_t, double, std::string_view> value_;
};

class SqliteWriter {
 public:
  SqliteWriter();

  // `columns`: with their types, in CREATE TABLE syntax. Names are not escaped: they must be constants in joulemap's
  // code, never text from a recording.
  void begin_table(std::string_view name, std::initializer_list<std::string_view> columns);
  // Adds a row to the table that begin_table() created last; one value per column. Invalid UTF-8 bytes become U+FFFD.
  void add_row(std::initializer_list<SqliteValue> values);

  // The bytes of the database file, or the error of the first statement that failed.
  Result<std::string> take_bytes() &&;

 private:
  struct SqliteHandleDeleter {
    void operator()(sqlite3* database) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  void run_statement(const std::string& sql);
  void store_first_failure();

  std::unique_ptr<sqlite3, SqliteHandleDeleter> database_;
  std::unique_ptr<sqlite3_stmt, SqliteHandleDeleter> insert_statement_;
  std::string first_failure_;
};

}  // namespace joulemap::formats
