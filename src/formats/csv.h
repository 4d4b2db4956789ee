// SPDX-License-Identifier: Apache-2.0
//
// Comma-separated values (RFC 4180): quoted fields may contain commas, quotes and newlines. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace joulemap::formats {

using CsvRecord = std::vector<std::string>;

// All records of the text. Lines end with LF or CRLF; empty lines and a byte-order mark are skipped. An unterminated
// quote extends to the end of the text.
std::vector<CsvRecord> read_csv(std::string_view text, char separator = ',');

// One line, with commas and its newline; quotes fields where necessary.
std::string csv_line(const CsvRecord& record);

}  // namespace joulemap::formats
