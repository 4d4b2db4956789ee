// SPDX-License-Identifier: Apache-2.0
//
// Creates SQLite databases for tests from SQL statements.
#pragma once

#include <string>

namespace joulemap {

// Returns the bytes of the file. A failing statement fails the test.
std::string sqlite_bytes(const std::string& sql);

}  // namespace joulemap
