// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/spec_reader.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace joulemap::experiment {

using formats::DocumentMember;
using formats::DocumentValue;

void SpecErrors::add(std::size_t line, const std::string& message) {
  error_lines_.emplace_back(line, line > 0 ? fmt::format("{}:{}: {}", file_name_, line, message)
                                           : fmt::format("{}: {}", file_name_, message));
}

Error SpecErrors::to_error() const {
  std::vector<std::pair<std::size_t, std::string>> sorted_lines = error_lines_;
  std::stable_sort(sorted_lines.begin(), sorted_lines.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string message;
  for (const auto& [line, text] : sorted_lines) message += (message.empty() ? "" : "\n") + text;
  return {ErrorCode::usage, message, "correct the file; joulemap experiment plan FILE checks it and runs nothing"};
}

SpecReader::SpecReader(const DocumentValue* table, std::string table_name, SpecErrors& errors)
    : table_(table), table_name_(std::move(table_name)), errors_(errors) {
  if (table_ == nullptr || table_->table() != nullptr) return;
  errors_.add(table_->line, table_name_ + " must be a table");
  table_ = nullptr;
}

std::size_t SpecReader::table_line_number() const { return table_ == nullptr ? 0 : table_->line; }

std::string SpecReader::qualified_key(std::string_view key) const {
  return table_name_.empty() ? std::string(key) : fmt::format("{} of {}", key, table_name_);
}

void SpecReader::add_error(const DocumentValue& value, const std::string& message) { errors_.add(value.line, message); }

const DocumentValue* SpecReader::take_value(std::string_view key) {
  consumed_keys_.emplace_back(key);
  return table_ == nullptr ? nullptr : table_->find(key);
}

void SpecReader::read_text(std::string_view key, std::string& destination) {
  const DocumentValue* const value = take_value(key);
  if (value == nullptr) return;
  const std::optional<std::string> text = value->text();
  if (text && !text->empty()) {
    destination = *text;
  } else {
    add_error(*value, qualified_key(key) + " must be a non-empty string in quotes");
  }
}

void SpecReader::read_text_list(std::string_view key, std::vector<std::string>& destination) {
  const DocumentValue* const value = take_value(key);
  if (value == nullptr) return;
  std::vector<std::string> texts;
  for (const DocumentValue& element : value->array() == nullptr ? DocumentValue::Array{} : *value->array()) {
    if (const std::optional<std::string> text = element.text()) texts.push_back(*text);
  }
  if (value->array() == nullptr || texts.size() != value->array()->size()) {
    add_error(*value, qualified_key(key) + " must be a list of strings: [\"a\", \"b\"]");
    return;
  }
  destination = std::move(texts);
}

void SpecReader::read_boolean(std::string_view key, std::optional<bool>& destination) {
  const DocumentValue* const value = take_value(key);
  if (value == nullptr) return;
  destination = value->boolean();
  if (!destination) add_error(*value, qualified_key(key) + " must be true or false");
}

void SpecReader::read_boolean(std::string_view key, bool& destination) {
  std::optional<bool> parsed_value;
  read_boolean(key, parsed_value);
  destination = parsed_value.value_or(destination);
}

void SpecReader::read_number(std::string_view key, std::optional<double>& destination, double min_value,
                             double max_value) {
  const DocumentValue* const value = take_value(key);
  if (value == nullptr) return;
  const std::optional<double> number = value->number();
  if (number && *number >= min_value && *number <= max_value) {
    destination = number;
  } else {
    add_error(*value, fmt::format("{} must be a number from {:g} to {:g}", qualified_key(key), min_value, max_value));
  }
}

void SpecReader::read_number(std::string_view key, double& destination, double min_value, double max_value) {
  std::optional<double> parsed_value;
  read_number(key, parsed_value, min_value, max_value);
  destination = parsed_value.value_or(destination);
}

void SpecReader::read_count(std::string_view key, std::size_t& destination, std::size_t min_value,
                            std::size_t max_value) {
  const DocumentValue* const value = take_value(key);
  if (value == nullptr) return;
  const std::optional<std::int64_t> number = value->integer();
  if (number && *number >= static_cast<std::int64_t>(min_value) && *number <= static_cast<std::int64_t>(max_value)) {
    destination = static_cast<std::size_t>(*number);
  } else {
    add_error(*value, fmt::format("{} must be a whole number from {} to {}", qualified_key(key), min_value, max_value));
  }
}

void SpecReader::read_command(std::string_view key, CommandSpec& destination) {
  const DocumentValue* const value = take_value(key);
  if (value == nullptr) return;
  if (const std::optional<std::string> shell = value->text()) {
    if (trim(*shell).empty()) add_error(*value, qualified_key(key) + " is empty");
    destination.shell_text = *shell;
    return;
  }
  std::vector<std::string> arguments;
  if (const DocumentValue::Array* const elements = value->array()) {
    for (const DocumentValue& element : *elements) {
      if (const std::optional<std::string> word = level_text(element)) arguments.push_back(*word);
    }
    if (!arguments.empty() && arguments.size() == elements->size() && !arguments.front().empty()) {
      destination.arguments = std::move(arguments);
      return;
    }
  }
  add_error(*value,
            qualified_key(key) + " must be a list of words, [\"python\", \"train.py\"], or a string for the shell");
}

void SpecReader::report_unknown_keys() {
  if (table_ == nullptr) return;
  for (const DocumentMember& member : *table_->table()) {
    if (std::find(consumed_keys_.begin(), consumed_keys_.end(), member.key) != consumed_keys_.end()) continue;
    std::string valid_keys;
    for (auto key = consumed_keys_.begin(); key != consumed_keys_.end(); ++key) {
      if (std::find(consumed_keys_.begin(), key, *key) == key) valid_keys += (valid_keys.empty() ? "" : ", ") + *key;
    }
    add_error(member.value,
              fmt::format("{}: unknown key {}; valid keys: {}", table_name_.empty() ? "top level" : table_name_,
                          joulemap::quoted(member.key), valid_keys));
  }
}

std::optional<std::string> level_text(const DocumentValue& value) {
  if (const std::optional<std::string> text = value.text()) return text;
  if (const std::optional<bool> truth = value.boolean()) return *truth ? "true" : "false";
  if (const std::optional<std::int64_t> integer = value.integer()) return fmt::format("{}", *integer);
  if (const std::optional<double> number = value.number()) return fmt::format("{}", *number);
  return std::nullopt;
}

}  // namespace joulemap::experiment
