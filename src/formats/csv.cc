// SPDX-License-Identifier: Apache-2.0
#include "formats/csv.h"

namespace joulemap::formats {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of UTF-8; spreadsheets write it

// Reads the field at `position`, without its quotes, and moves `position` to the separator or newline behind it.
std::string read_csv_field(std::string_view text, std::size_t& position, char separator) {
  std::string field;
  if (position < text.size() && text[position] == '"') {
    for (++position; position < text.size(); ++position) {
      if (text[position] != '"') {
        field += text[position];
      } else if (position + 1 < text.size() && text[position + 1] == '"') {
        field += text[++position];
      } else {
        ++position;
        break;
      }
    }
  }
  while (position < text.size() && text[position] != separator && text[position] != '\n') field += text[position++];
  return field;
}

}  // namespace

std::vector<CsvRecord> read_csv(std::string_view text, char separator) {
  std::vector<CsvRecord> records;
  std::size_t position = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  while (position < text.size()) {
    CsvRecord record;
    record.push_back(read_csv_field(text, position, separator));
    while (position < text.size() && text[position] == separator)
      record.push_back(read_csv_field(text, ++position, separator));
    ++position;  // skips the newline
    if (record.back().ends_with('\r')) record.back().pop_back();
    if (record.size() > 1 || !record.front().empty()) records.push_back(std::move(record));
  }
  return records;
}

std::string csv_line(const CsvRecord& record) {
  std::string line;
  for (const std::string& field : record) {
    if (&field != &record.front()) line += ',';
    const bool is_plain = field.find_first_of(",\"\r\n") == std::string::npos && !(record.size() == 1 && field.empty());
    if (is_plain) {
      line += field;
      continue;
    }
    line += '"';
    for (const char character : field) {
      if (character == '"') line += '"';
      line += character;
    }
    line += '"';
  }
  return line + "\n";
}

}  // namespace joulemap::formats
