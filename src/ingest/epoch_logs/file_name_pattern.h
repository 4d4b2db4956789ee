// SPDX-License-Identifier: Apache-2.0
//
// FileNamePattern: extracts fields from a file name by a pattern like "run{run}-{framework}-{dataset}.csv". Each field in
// braces matches at least one character except a slash, as few as the rest allows. A field with values, such as
// "{framework:pytorch|tensorflow}", matches only one of them. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace joulemap::ingest {

class FileNamePattern {
 public:
  using FieldValues = std::map<std::string, std::string>;

  // Fails on unclosed braces, empty or repeated fields, empty values, and adjacent fields without a separator.
  static Result<FileNamePattern> parse(std::string_view text);

  std::optional<FieldValues> match(std::string_view name) const;
  // Returns the name with these fields inserted; nullopt if one is missing.
  std::optional<std::string> make_file_name(const FieldValues& fields) const;
  const std::vector<std::string>& field_names() const { return field_names_; }

 private:
  bool add_field(std::string_view text);
  bool match_fields_from(std::size_t field, std::string_view remaining_name, FieldValues& field_values) const;

  // literal_parts_[0] field_names_[0] literal_parts_[1] ... : one literal more than fields.
  std::vector<std::string> literal_parts_;
  std::vector<std::string> field_names_;
  std::vector<std::vector<std::string>> allowed_values_;  // by field: those that it may have; empty: any
};

}  // namespace joulemap::ingest
