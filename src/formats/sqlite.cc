// SPDX-License-Identifier: Apache-2.0
#include "formats/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/small_file.h"

namespace joulemap::formats {
namespace {

constexpr int kMaxSqliteValueBytes =
    1 << 26;  // bytes; SQLite reports larger values as errors, and no trace has such texts

std::string quote_identifier(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

Error not_a_database_error(std::string_view name, sqlite3* database) {
  const char* const reason = database != nullptr ? sqlite3_errmsg(database) : "out of memory";
  return {ErrorCode::malformed, fmt::format("{}: not an SQLite database: {}", name, reason), {}};
}

}  // namespace

void SqliteRows::StatementFinalizer::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void SqliteDatabase::DatabaseCloser::operator()(sqlite3* database) const { sqlite3_close(database); }

// Pages of a damaged file can form cycles, so the rows are limited: an intact file never has more rows than bytes.
bool SqliteRows::next() {
  if (!statement_) return false;
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW && remaining_row_limit_-- > 0) return true;
  if (code != SQLITE_DONE)
    damage_text_ = code == SQLITE_ROW ? "it has more rows than bytes" : sqlite3_errmsg(database_);
  statement_.reset();
  return false;
}

std::optional<std::int64_t> SqliteRows::integer(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view SqliteRows::text(int column) const {
  if (!is_text(column)) return {};
  const auto* const bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? std::string_view() : std::string_view(bytes, static_cast<std::size_t>(size));
}

bool SqliteRows::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
bool SqliteRows::is_text(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_TEXT; }

Result<SqliteDatabase> SqliteDatabase::open(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return system_error("open", path, errno);
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<sqlite3, DatabaseCloser> database(connection);
  if (code != SQLITE_OK) return not_a_database_error(path, connection);
  return check_opened_database(std::move(database), path,
                               static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0)));
}

Result<SqliteDatabase> SqliteDatabase::from_bytes(std::string_view bytes) {
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(":memory:", &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<sqlite3, DatabaseCloser> database(connection);
  if (code != SQLITE_OK) return not_a_database_error("bytes", connection);
  auto* const copy = static_cast<unsigned char*>(sqlite3_malloc64(std::max<std::size_t>(bytes.size(), 1)));
  if (copy == nullptr) return not_a_database_error("bytes", nullptr);
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  // SQLite frees the copy, also on failure.
  if (sqlite3_deserialize(connection, "main", copy, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) != SQLITE_OK) {
    return not_a_database_error("bytes", connection);
  }
  return check_opened_database(std::move(database), "bytes", bytes.size());
}

// Opening a database does not read it. The query here is the first access and fails if the file is not a database.
Result<SqliteDatabase> SqliteDatabase::check_opened_database(std::unique_ptr<sqlite3, DatabaseCloser> database,
                                                             std::string_view name, std::uint64_t bytes) {
  sqlite3_limit(database.get(), SQLITE_LIMIT_LENGTH, kMaxSqliteValueBytes);
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  SqliteDatabase checked;
  checked.database_ = std::move(database);
  checked.bytes_ = bytes;
  SqliteRows tables = checked.run_query("SELECT count(*) FROM sqlite_master", {});
  if (!tables.next()) return not_a_database_error(name, checked.database_.get());
  return checked;
}

SqliteRows SqliteDatabase::run_query(const std::string& sql, std::string_view argument) const {
  SqliteRows rows;
  rows.database_ = database_.get();
  rows.remaining_row_limit_ = bytes_;
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  rows.statement_.reset(statement);
  if (code != SQLITE_OK) {
    rows.damage_text_ = sqlite3_errmsg(database_.get());
  } else if (!argument.empty()) {
    sqlite3_bind_text64(statement, 1, argument.data(), argument.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  return rows;
}

std::vector<std::string> SqliteDatabase::column_names(std::string_view table) const {
  std::vector<std::string> names;
  SqliteRows table_rows =
      run_query("SELECT 1 FROM sqlite_master WHERE name = ? AND type = 'table' AND rootpage > 0", table);
  if (!table_rows.next()) return names;
  SqliteRows rows = run_query("SELECT name FROM pragma_table_info(?)", table);
  while (rows.next()) names.emplace_back(rows.text(0));
  return names;
}

SqliteRows SqliteDatabase::rows(std::string_view table, std::initializer_list<std::string_view> columns) const {
  const std::vector<std::string> table_columns = this->column_names(table);
  if (table_columns.empty()) return {};
  std::string column_list;
  for (const std::string_view column : columns) {
    const bool has_column = std::find(table_columns.begin(), table_columns.end(), column) != table_columns.end();
    column_list += (column_list.empty() ? "" : ", ") + (has_column ? quote_identifier(column) : std::string("NULL"));
  }
  return run_query(fmt::format("SELECT {} FROM {}", column_list, quote_identifier(table)), {});
}

}  // namespace joulemap::formats
