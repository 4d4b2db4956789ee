// SPDX-License-Identifier: Apache-2.0
//
// Reads a JSON array of objects one object at a time, as the traces of many profilers are: the face of RapidJSON's reader.
// Members of objects within an object are known by their path, "args.op_name"; arrays within are left out. Numbers are read
// as integers where they are. Pure; memory for one object.
//
//   bool whole = for_each_json_object(text, [](const JsonFields& fields) { ... fields.text("name") ... });
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace joulemap::formats {

class JsonFields {
 public:
  void set(std::string path, std::variant<std::int64_t, double, std::string> value) {
    fields_.insert_or_assign(std::move(path), std::move(value));
  }
  void clear() { fields_.clear(); }

  // Empty or nothing where there is no such member, or one of another type. Until the next object.
  std::string_view text(std::string_view path) const;
  std::optional<std::int64_t> integer(std::string_view path) const;

 private:
  std::map<std::string, std::variant<std::int64_t, double, std::string>, std::less<>> fields_;
};

// False when the text ends too soon or makes no sense; the objects before that have been given.
bool for_each_json_object(std::string_view text, const std::function<void(const JsonFields&)>& visit);

}  // namespace joulemap::formats
