// SPDX-License-Identifier: Apache-2.0
//
// Reads an array of JSON objects one object at a time, as in the traces of many profilers. Wraps RapidJSON's SAX
// reader. The array is the whole text or the member "traceEvents" of an object. Members of nested objects are addressed
// by path, "args.op_name"; arrays are kept as source text, objects nested deeper than five levels are skipped. Numbers
// without fraction that fit into 64 bits are read as integers. Pure; holds one object in memory.
//
//   JsonObjectsResult read = for_each_json_object(text, [](const JsonFields& fields) { ... fields.text("name") ... });
//
// Trace writers often fail to escape characters. Control characters in strings are read as blanks. An invalid object is
// counted, and reading resumes at the next text that looks like the start of an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap::formats {

class JsonFields {
 public:
  // Return empty or nullopt if the member is missing or has another type. Views are valid until the next object.
  std::string_view text(std::string_view path) const;
  // Source text of an array, including its brackets.
  std::string_view array(std::string_view path) const;
  std::optional<std::int64_t> integer(std::string_view path) const;
  // Integer or floating point.
  std::optional<double> number(std::string_view path) const;

  void set(std::string_view path, std::int64_t value);
  void set(std::string_view path, double value);
  void set(std::string_view path, std::string_view value);
  void set_array(std::string_view path, std::string_view text);
  void clear() { field_count_ = 0; }

 private:
  enum class Kind : std::uint8_t { integer, real, text, array };
  struct Field {
    std::string path;
    Kind kind = Kind::integer;
    std::int64_t integer = 0;
    double number = 0;
    std::string text;
  };

  Field& reuse_field(std::string_view path, Kind kind);
  const Field* find(std::string_view path) const;

  std::vector<Field> fields_;  // never shrinks, to reuse the memory
  std::size_t field_count_ = 0;
};

struct JsonObjectsResult {
  bool has_array = false;           // the array exists
  bool has_array_ended = false;     // the end of the array was reached
  std::uint64_t damaged_count = 0;  // invalid objects and other values in the array; adjacent ones count once

  bool is_complete() const { return has_array && has_array_ended && damaged_count == 0; }
};

JsonObjectsResult for_each_json_object(std::string_view text, const std::function<void(const JsonFields&)>& visitor);

}  // namespace joulemap::formats
