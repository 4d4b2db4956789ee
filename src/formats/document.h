// SPDX-License-Identifier: Apache-2.0
//
// DocumentValue: a tree of values from a TOML or JSON file: experiment plans and results, configuration, GPU profiles,
// Keras models. Wraps toml++ and RapidJSON for files that fit into memory; json_cursor.h reads traces. Plain data.
// Values from TOML hold their line for error messages.
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
  using Table = std::vector<DocumentMember>;  // in file order

  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Table> content;
  std::size_t line = 0;  // line in the TOML file, from 1; 0 for JSON

  // find() and find_path() return nullptr if there is no such member. The others return nullptr or nullopt if this
  // value has another type.
  const DocumentValue* find(std::string_view key) const;
  const DocumentValue* find_path(std::string_view dotted_key) const;  // "a.b": member "a.b", else member "b" of "a"
  std::optional<bool> boolean() const;
  std::optional<std::int64_t> integer() const;
  std::optional<double> number() const;  // integer or floating point
  std::optional<std::string> text() const;
  const Array* array() const { return std::get_if<Array>(&content); }
  const Table* table() const { return std::get_if<Table>(&content); }
  bool is_null() const { return content.index() == 0; }

  // The value of the member `key`; nullopt or empty if it is missing or has another type.
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::string text_or_empty(std::string_view key) const;
};

struct DocumentMember {
  std::string key;
  DocumentValue value;
};

// `name` identifies the file in error messages. Dates and times of TOML become strings.
Result<DocumentValue> read_toml(std::string_view text, std::string_view name);
Result<DocumentValue> read_json(std::string_view text, std::string_view name);

// A TOML string literal, including quotes.
std::string toml_string_literal(std::string_view text);

}  // namespace joulemap::formats
