// SPDX-License-Identifier: Apache-2.0
#include "formats/sqlite_writer.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cmath>

#include "base/text.h"

namespace joulemap::formats {

void SqliteWriter::SqliteHandleDeleter::operator()(sqlite3* database) const { sqlite3_close(database); }
void SqliteWriter::SqliteHandleDeleter::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

SqliteWriter::SqliteWriter() {
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(":memory:", &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(connection);
  if (code != SQLITE_OK) store_first_failure();
  run_statement("BEGIN");
}

void SqliteWriter::store_first_failure() {
  if (first_failure_.empty()) first_failure_ = database_ ? sqlite3_errmsg(database_.get()) : "out of memory";
}

void SqliteWriter::run_statement(const std::string& sql) {
  if (!first_failure_.empty()) return;
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) store_first_failure();
}

void SqliteWriter::begin_table(std::string_view name, std::initializer_list<std::string_view> columns) {
  std::string column_list;
  std::string parameters;
  for (const std::string_view column : columns) {
    column_list += (column_list.empty() ? "" : ", ") + std::string(column);
    parameters += parameters.empty() ? "?" : ", ?";
  }
  insert_statement_.reset();
  run_statement(fmt::format("CREATE TABLE {} ({})", name, column_list));
  if (!first_failure_.empty()) return;
  const std::string sql = fmt::format("INSERT INTO {} VALUES ({})", name, parameters);
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) store_first_failure();
  insert_statement_.reset(statement);
}

void SqliteWriter::add_row(std::initializer_list<SqliteValue> values) {
  if (!first_failure_.empty() || !insert_statement_) return;
  int parameter = 0;
  for (const SqliteValue& row_value : values) {
    ++parameter;
    int code = SQLITE_OK;
    if (const auto* const number = std::get_if<std::int64_t>(&row_value.value_)) {
      code = sqlite3_bind_int64(insert_statement_.get(), parameter, *number);
    } else if (const auto* const float_value = std::get_if<double>(&row_value.value_);
               float_value != nullptr && std::isfinite(*float_value)) {
      code = sqlite3_bind_double(insert_statement_.get(), parameter, *float_value);
    } else if (const auto* const text = std::get_if<std::string_view>(&row_value.value_)) {
      const std::string valid_text = to_valid_utf8(*text);
      code = sqlite3_bind_text64(insert_statement_.get(), parameter, valid_text.data(), valid_text.size(),
                                 SQLITE_TRANSIENT, SQLITE_UTF8);
    } else {
      code = sqlite3_bind_null(insert_statement_.get(), parameter);
    }
    if (code != SQLITE_OK) store_first_failure();
  }
  if (sqlite3_step(insert_statement_.get()) != SQLITE_DONE) store_first_failure();
  sqlite3_reset(insert_statement_.get());
}

Result<std::string> SqliteWriter::take_bytes() && {
  insert_statement_.reset();
  run_statement("COMMIT");
  sqlite3_int64 size = 0;
  unsigned char* const file = first_failure_.empty() ? sqlite3_serialize(database_.get(), "main", &size, 0) : nullptr;
  if (file == nullptr) {
    store_first_failure();
    return Error{ErrorCode::io, fmt::format("cannot create the database: {}", first_failure_), {}};
  }
  std::string copy(reinterpret_cast<const char*>(file), static_cast<std::size_t>(size));
  sqlite3_free(file);
  return copy;
}

}  // namespace joulemap::formats
