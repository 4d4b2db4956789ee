// SPDX-License-Identifier: Apache-2.0
//
// Makes SQLite databases for tests, from the statements that fill them.
#pragma once

#include <string>

namespace joulemap {

// The bytes of the file. Statements that fail end the test.
std::string sqlite_bytes(const std::string& sql);

}  // namespace joulemap
