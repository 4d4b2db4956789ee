// SPDX-License-Identifier: Apache-2.0
//
// Reads an array of JSON objects one object at a time, as the traces of many profilers are: the face of RapidJSON's
// reader. The array is the whole text or the member "traceEvents" of an object. Members of objects within an object are
// known by their path, "args.op_name"; arrays within, and what lies deeper than five levels, are left out. Numbers are
// read as integers where they are. Pure; memory for one object.
//
//   JsonObjectsRead read = for_each_json_object(text, [](const JsonFields& fields) { ... fields.text("name") ... });
//
// Writers of traces forget to escape: an object with control characters in its texts is read as if they were blanks,
// one that makes no sense is counted, and reading goes on at the next that begins like one.
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
  // Empty or nothing where there is no such member, or one of another type. Until the next object.
  std::string_view text(std::string_view path) const;
  // The text of an array, with its brackets, as it stands in the file.
  std::string_view array(std::string_view path) const;
  std::optional<std::int64_t> integer(std::string_view path) const;
  // Integer or not.
  std::optional<double> number(std::string_view path) const;

  void set(std::string_view path, std::int64_t value);
  void set(std::string_view path, double value);
  void set(std::string_view path, std::string_view value);
  void set_array(std::string_view path, std::string_view text);
  void clear() { size_ = 0; }

 private:
  enum class Kind : std::uint8_t { integer, real, text, array };
  struct Field {
    std::string path;
    Kind kind = Kind::integer;
    std::int64_t integer = 0;
    double real = 0;
    std::string text;
  };

  Field& next(std::string_view path, Kind kind);
  const Field* find(std::string_view path) const;

  std::vector<Field> fields_;  // as many as the largest object had, so that their memory is used again
  std::size_t size_ = 0;
};

struct JsonObjectsRead {
  bool found = false;         // there is such an array
  bool ended = false;         // and its end was seen
  std::uint64_t damaged = 0;  // objects that made no sense

  bool whole() const { return found && ended && damaged == 0; }
};

JsonObjectsRead for_each_json_object(std::string_view text, const std::function<void(const JsonFields&)>& visit);

}  // namespace joulemap::formats
