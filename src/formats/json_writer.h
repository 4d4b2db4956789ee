// SPDX-License-Identifier: Apache-2.0
//
// JsonWriter: writes one line of JSON into memory. Wraps RapidJSON's writer, which no other folder includes. The output
// is always valid JSON: non-finite numbers and empty optionals become null, invalid UTF-8 bytes (possible in command
// arguments) become U+FFFD.
//
//   JsonWriter json;
//   json.begin_object().member("name", "package-0").member("joules", joules).end_object();
//   std::string line = std::move(json).text();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace joulemap::formats {

class JsonWriter {
 public:
  JsonWriter();
  ~JsonWriter();
  JsonWriter(JsonWriter&&) noexcept;

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& value(double number);
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(bool truth);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& null();

  template <class T>
  JsonWriter& value(const std::optional<T>& optional_value) {
    return optional_value ? value(*optional_value) : null();
  }
  template <class T>
  JsonWriter& member(std::string_view name, const T& content) {
    return key(name).value(content);
  }
  // Writes null for an empty text.
  JsonWriter& text_or_null(std::string_view name, std::string_view text);

  // The complete text. Every object and array must be closed.
  std::string text() &&;

 private:
  struct State;
  std::unique_ptr<State> state_;  // hides RapidJSON from includers
};

}  // namespace joulemap::formats
