// SPDX-License-Identifier: Apache-2.0
#include "formats/document.h"

#include <fmt/format.h>

namespace joulemap::formats {

const DocumentValue* DocumentValue::find(std::string_view key) const {
  const Table* const members = table();
  if (members == nullptr) return nullptr;
  for (const DocumentMember& member : *members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

const DocumentValue* DocumentValue::find_path(std::string_view dotted_key) const {
  if (const DocumentValue* const member = find(dotted_key)) return member;
  for (std::size_t dot_position = dotted_key.find('.'); dot_position != std::string_view::npos;
       dot_position = dotted_key.find('.', dot_position + 1)) {
    const DocumentValue* const branch = find(dotted_key.substr(0, dot_position));
    const DocumentValue* const nested_value =
        branch == nullptr ? nullptr : branch->find_path(dotted_key.substr(dot_position + 1));
    if (nested_value != nullptr) return nested_value;
  }
  return nullptr;
}

std::optional<bool> DocumentValue::boolean() const {
  const bool* const value = std::get_if<bool>(&content);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::int64_t> DocumentValue::integer() const {
  const std::int64_t* const value = std::get_if<std::int64_t>(&content);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<double> DocumentValue::number() const {
  if (const double* const value = std::get_if<double>(&content)) return *value;
  if (const std::optional<std::int64_t> integer_value = integer()) return static_cast<double>(*integer_value);
  return std::nullopt;
}

std::optional<std::string> DocumentValue::text() const {
  const std::string* const value = std::get_if<std::string>(&content);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<bool> DocumentValue::boolean(std::string_view key) const {
  const DocumentValue* const member = find(key);
  return member == nullptr ? std::nullopt : member->boolean();
}

std::optional<std::int64_t> DocumentValue::integer(std::string_view key) const {
  const DocumentValue* const member = find(key);
  return member == nullptr ? std::nullopt : member->integer();
}

std::optional<double> DocumentValue::number(std::string_view key) const {
  const DocumentValue* const member = find(key);
  return member == nullptr ? std::nullopt : member->number();
}

std::string DocumentValue::text_or_empty(std::string_view key) const {
  const DocumentValue* const member = find(key);
  return member == nullptr ? std::string() : member->text().value_or("");
}

std::string toml_string_literal(std::string_view text) {
  std::string out = "\"";
  for (const char character : text) {
    if (character == '"' || character == '\\') {
      out += '\\';
      out += character;
    } else if (static_cast<unsigned char>(character) < 0x20 || character == 0x7f) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned char>(character));
    } else {
      out += character;
    }
  }
  return out + "\"";
}

}  // namespace joulemap::formats
