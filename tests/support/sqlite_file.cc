// SPDX-License-Identifier: Apache-2.0
#include "support/sqlite_file.h"

#include <sqlite3.h>

#include <memory>

#include "base/check.h"

namespace joulemap {

std::string sqlite_bytes(const std::string& sql) {
  sqlite3* connection = nullptr;
  JOULEMAP_CHECK(sqlite3_open(":memory:", &connection) == SQLITE_OK, "no database could be made");
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database(connection, sqlite3_close);
  JOULEMAP_CHECK(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK,
                 sqlite3_errmsg(connection));
  sqlite3_int64 size = 0;
  unsigned char* const bytes = sqlite3_serialize(connection, "main", &size, 0);
  JOULEMAP_CHECK(bytes != nullptr, "the database could not be written");
  std::string copy(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  return copy;
}

}  // namespace joulemap
