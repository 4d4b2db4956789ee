// SPDX-License-Identifier: Apache-2.0
//
// A CSV table of measurements with access by column name. Internal to src/predict: the public interfaces are
// measured_operations.h and network_model.h.
#pragma once

#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/csv.h"
#include "predict/graph/operation.h"

namespace joulemap::predict {

class CsvColumns {
 public:
  explicit CsvColumns(const formats::CsvRecord& header) {
    for (std::size_t index = 0; index < header.size(); ++index) index_by_name_[header[index]] = index;
  }
  std::optional<std::string> first_missing_column(std::span<const std::string_view> names) const {
    for (const std::string_view name : names) {
      if (index_by_name_.find(name) == index_by_name_.end()) return std::string(name);
    }
    return std::nullopt;
  }
  const std::string& text(const formats::CsvRecord& record, std::string_view name) const {
    static const std::string kNone;
    const auto index_entry = index_by_name_.find(name);
    return index_entry == index_by_name_.end() || index_entry->second >= record.size() ? kNone
                                                                                       : record[index_entry->second];
  }
  double number(const formats::CsvRecord& record, std::string_view name) const {
    return std::strtod(text(record, name).c_str(), nullptr);
  }

 private:
  std::map<std::string, std::size_t, std::less<>> index_by_name_;
};

struct CsvTable {
  CsvColumns columns;
  std::vector<formats::CsvRecord> records;
};

// Parses a CSV text with a header line. The Error names the first required column that is missing.
Result<CsvTable> read_table(std::string_view csv, std::span<const std::string_view> needed);

// Parses an operation from the columns kind, parameters, dtype and pass.
Result<Operation> parse_operation(const CsvColumns& columns, const formats::CsvRecord& record);

}  // namespace joulemap::predict
