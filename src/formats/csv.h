// SPDX-License-Identifier: Apache-2.0
//
// Comma-separated values (RFC 4180): fields in quotes may hold commas, quotes and line ends. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace joulemap::formats {

using CsvRecord = std::vector<std::string>;

// Every record of the text; lines end with LF or CRLF, and empty ones are left out. A quote that never closes ends with
// the text.
std::vector<CsvRecord> read_csv(std::string_view text, char separator = ',');

// One line with its end; fields are put in quotes where they must be.
std::string csv_line(const CsvRecord& record);

}  // namespace joulemap::formats
