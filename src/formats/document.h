// SPDX-License-Identifier: Apache-2.0
//
// DocumentValue: a small document of nested values, as TOML and JSON files are: plans, results of rows, metrics that a
// program wrote. The faces of toml++ and of RapidJSON for files that fit into memory; traces are read by
// json_cursor.h. Plain data; a value knows its line, so that a mistake can be shown.
//
//   Result<DocumentValue> plan = read_toml(text, "experiment.toml");
//   const DocumentValue* repetitions = plan->find("repetitions");
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace joulemap::formats {

struct DocumentMember;

struct DocumentValue {
  using Array = std::vector<DocumentValue>;
  using Table = std::vector<DocumentMember>;  // in the order of the file

  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Table> content;
  std::size_t line = 0;  // of the file, from 1; 0 where not known

  // Nothing where it is of another type, or where there is none.
  const DocumentValue* find(std::string_view key) const;
  const DocumentValue* find_path(std::string_view dotted) const;  // "test.accuracy"; a member of that very name first
  std::optional<bool> boolean() const;
  std::optional<std::int64_t> integer() const;
  std::optional<double> number() const;  // integer or not
  std::optional<std::string> text() const;
  const Array* array() const { return std::get_if<Array>(&content); }
  const Table* table() const { return std::get_if<Table>(&content); }
  bool is_null() const { return content.index() == 0; }

  // Of a member, if there is one of that type.
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::string text_or_empty(std::string_view key) const;
};

struct DocumentMember {
  std::string key;
  DocumentValue value;
};

// `name` is what a message calls the file. Dates and times become texts.
Result<DocumentValue> read_toml(std::string_view text, std::string_view name);
Result<DocumentValue> read_json(std::string_view text, std::string_view name);

// A text as TOML writes it, with its quotes.
std::string toml_text(std::string_view text);

}  // namespace joulemap::formats
