// SPDX-License-Identifier: Apache-2.0
#include "ingest/epoch_logs/file_name_pattern.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace joulemap::ingest {

// Adds "framework" or "framework:pytorch|tensorflow". False if it is invalid.
bool FileNamePattern::add_field(std::string_view text) {
  const std::size_t colon = text.find(':');
  std::string name(text.substr(0, colon));
  const bool is_known = std::find(field_names_.begin(), field_names_.end(), name) != field_names_.end();
  if (is_known || name.empty() || text.find('{') != std::string_view::npos) return false;
  std::vector<std::string> values;
  if (colon != std::string_view::npos) {
    for (const std::string_view value : split(text.substr(colon + 1), '|')) values.emplace_back(value);
    if (values.empty() || std::find(values.begin(), values.end(), "") != values.end()) return false;
  }
  field_names_.push_back(std::move(name));
  allowed_values_.push_back(std::move(values));
  return true;
}

Result<FileNamePattern> FileNamePattern::parse(std::string_view text) {
  const Error pattern_error{ErrorCode::usage, fmt::format("invalid pattern {}", quoted(text, 120)),
                            "for example: --pattern 'run{run}-{framework}-{dataset}.csv'"};
  FileNamePattern pattern;
  std::string_view remaining_text = text;
  while (true) {
    const std::size_t open_brace_position = remaining_text.find('{');
    pattern.literal_parts_.emplace_back(remaining_text.substr(0, open_brace_position));
    if (pattern.literal_parts_.back().find('}') != std::string::npos) return pattern_error;
    if (open_brace_position == std::string_view::npos) break;
    const std::size_t close = remaining_text.find('}', open_brace_position);
    if (close == std::string_view::npos) return pattern_error;
    const bool is_field_separated = pattern.field_names_.empty() || !pattern.literal_parts_.back().empty();
    if (!is_field_separated ||
        !pattern.add_field(remaining_text.substr(open_brace_position + 1, close - open_brace_position - 1)))
      return pattern_error;
    remaining_text.remove_prefix(close + 1);
  }
  return pattern;
}

std::optional<FileNamePattern::FieldValues> FileNamePattern::match(std::string_view name) const {
  if (!name.starts_with(literal_parts_.front())) return std::nullopt;
  FieldValues field_values;
  return match_fields_from(0, name.substr(literal_parts_.front().size()), field_values) ? std::optional(field_values)
                                                                                        : std::nullopt;
}

bool FileNamePattern::match_fields_from(std::size_t field, std::string_view remaining_name,
                                        FieldValues& field_values) const {
  if (field == field_names_.size()) return remaining_name.empty();
  const std::string& literal = literal_parts_[field + 1];
  const bool is_last = field + 1 == field_names_.size();
  for (std::size_t length = 1; length + literal.size() <= remaining_name.size(); ++length) {
    if (remaining_name[length - 1] == '/') return false;
    if (is_last && length + literal.size() != remaining_name.size()) continue;
    if (remaining_name.substr(length, literal.size()) != literal) continue;
    const std::string value(remaining_name.substr(0, length));
    const std::vector<std::string>& values = allowed_values_[field];
    if (!values.empty() && std::find(values.begin(), values.end(), value) == values.end()) continue;
    field_values[field_names_[field]] = value;
    if (match_fields_from(field + 1, remaining_name.substr(length + literal.size()), field_values)) return true;
  }
  return false;
}

std::optional<std::string> FileNamePattern::make_file_name(const FieldValues& fields) const {
  std::string name = literal_parts_.front();
  for (std::size_t i = 0; i < field_names_.size(); ++i) {
    const auto matching_field = fields.find(field_names_[i]);
    if (matching_field == fields.end()) return std::nullopt;
    name += matching_field->second + literal_parts_[i + 1];
  }
  return name;
}

}  // namespace joulemap::ingest
