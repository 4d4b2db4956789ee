// SPDX-License-Identifier: Apache-2.0
//
// SpecReader: reads members of one table of experiment.toml, collects mistakes, and reports members that were never
// read, which are usually mistyped names. One object per table; only parse_spec uses it.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/plan/experiment_spec.h"
#include "formats/document.h"

namespace joulemap::experiment {

// Messages "file:12: what is wrong"; shared by the readers of one file.
class SpecErrors {
 public:
  explicit SpecErrors(std::string_view file) : file_name_(file) {}
  void add(std::size_t line, const std::string& message);
  bool empty() const { return error_lines_.empty(); }
  Error to_error() const;

 private:
  std::string file_name_;
  std::vector<std::pair<std::size_t, std::string>> error_lines_;  // (line, message)
};

class SpecReader {
 public:
  // `table_name` names the table in messages: "[checks]"; empty for the top level. Null `table`: every value keeps its
  // default.
  SpecReader(const formats::DocumentValue* table, std::string table_name, SpecErrors& errors);

  const formats::DocumentValue* take_value(std::string_view key);  // unchecked value; the caller validates it
  void read_text(std::string_view key, std::string& destination);
  void read_text_list(std::string_view key, std::vector<std::string>& destination);
  void read_boolean(std::string_view key, bool& destination);
  void read_boolean(std::string_view key, std::optional<bool>& destination);
  void read_number(std::string_view key, double& destination, double min_value, double max_value);
  void read_number(std::string_view key, std::optional<double>& destination, double min_value, double max_value);
  void read_count(std::string_view key, std::size_t& destination, std::size_t min_value, std::size_t max_value);
  void read_command(std::string_view key, CommandSpec& destination);
  template <class Choice>
  void read_choice(std::string_view key, Choice& destination,
                   std::initializer_list<std::pair<std::string_view, Choice>> choices) {
    std::string choice_name;
    read_text(key, choice_name);
    if (choice_name.empty()) return;
    std::string valid_choices;
    for (const auto& [name, value] : choices) {
      if (name == choice_name) {
        destination = value;
        return;
      }
      valid_choices += fmt::format("{}\"{}\"", valid_choices.empty() ? "" : ", ", name);
    }
    add_error(*take_value(key), fmt::format("{} must be one of {}", qualified_key(key), valid_choices));
  }

  // Reports the members that were never read.
  void report_unknown_keys();
  std::string qualified_key(std::string_view key) const;
  void add_error(const formats::DocumentValue& value, const std::string& message);
  std::size_t table_line_number() const;

 private:
  const formats::DocumentValue* table_;
  std::string table_name_;
  SpecErrors& errors_;
  std::vector<std::string> consumed_keys_;
};

// A level as text, as written in the file; none if the value is not a scalar.
std::optional<std::string> level_text(const formats::DocumentValue& value);

}  // namespace joulemap::experiment
